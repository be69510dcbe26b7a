//! A process that opens all that it needs and then gives up rights keeps the locks of its stock
//! connections when one of dash's is closed: the look at its descriptors goes as far as the highest
//! limit that it had, and what a sandbox does not let be asked counts as open.

use dash_testing::roles::{Role, python};

const SCRIPT: &str = r#"
import ctypes, errno, io, platform, resource, struct
path, mode, how = sys.argv[2], sys.argv[3], sys.argv[4]
db = open(path, '&journal_mode=' + mode)
db.execute('CREATE TABLE t(x)')
db.close()
# The descriptors that count get numbers beyond the limit to come, and are too many to be listed.
spare = [os.dup(0) for _ in range(200)]
def locks():
    # A set: a line comes twice where others lock and unlock meanwhile.
    with io.open('/proc/locks') as all:
        return {line.split(': ')[1] for line in all if f' {os.getpid()} ' in line and 'POSIX' in line}
stock = sqlite3.connect(path, isolation_level=None)
stock.execute('BEGIN')
stock.execute('SELECT * FROM t').fetchall()
own = locks()
assert own
db = open(path)
db.execute('SELECT * FROM t').fetchall()

def deny(calls, answer):
    BPF_LD, BPF_JEQ, BPF_RET, ALLOW, ERRNO = 0x20, 0x15, 0x06, 0x7fff0000, 0x00050000
    steps = [(BPF_LD, 0, 0, 0)]
    for call in calls: steps += [(BPF_JEQ, 0, 1, call), (BPF_RET, 0, 0, ERRNO | answer)]
    steps.append((BPF_RET, 0, 0, ALLOW))
    code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in steps))
    program = struct.pack('HxxxxxxQ', len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, ctypes.create_string_buffer(program)) == 0  # PR_SET_SECCOMP

STATX, FSTAT, NEWFSTATAT = {'x86_64': (332, 5, 262), 'aarch64': (291, 80, 79)}[platform.machine()]
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
if how == 'limit':
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, limits[1]))
elif how == 'statx': deny([STATX], errno.EPERM)
else: deny([STATX, FSTAT, NEWFSTATAT], errno.EACCES)
db.close()
if how == 'limit': resource.setrlimit(resource.RLIMIT_NOFILE, limits)
assert locks() == own, (own, locks())
os._exit(0)
"#;

fn closed_after(how: &str) {
    for mode in ["wal", "shadow", "statement"] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("app.db");
        let Some(mut command) = python(SCRIPT, &[&path, mode.as_ref(), how.as_ref()]) else {
            return;
        };
        Role::spawn(&mut command).finish();
    }
}

#[test]
fn where_the_limit_on_descriptors_was_lowered() {
    closed_after("limit");
}

#[test]
fn where_a_sandbox_denies_statx() {
    closed_after("statx");
}

#[test]
fn where_a_sandbox_lets_no_descriptor_be_asked() {
    closed_after("all");
}
