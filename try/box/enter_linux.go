package box

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// ofMachine are the directories of this machine that a container has: those of programs.
var ofMachine = []string{"bin", "gnu", "lib", "lib32", "lib64", "libx32", "nix", "opt", "sbin", "usr"}

// ofEtc is what a container has of /etc: how names are resolved and certificates are checked.
var ofEtc = []string{
	"alternatives", "ca-certificates", "crypto-policies", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "nsswitch.conf",
	"pki", "resolv.conf", "services", "ssl",
}

// devices are those that every container has.
var devices = []string{"null", "zero", "full", "random", "urandom"}

const accounts = "root:x:0:0:root:/root:/bin/sh\nnonroot:x:65532:65532:nonroot:/tmp:/bin/sh\n"

// flexDir is where a container has the program flex, which is this one.
const flexDir = "/flex"

// Path is the variable PATH of a container that sets none.
const Path = "PATH=" + flexDir + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// enter makes this process a container's program. It reads what that is from the process that has
// started it.
func enter(dir string) error {
	var spec Spec
	if err := json.NewDecoder(os.NewFile(3, "spec")).Decode(&spec); err != nil {
		return fmt.Errorf("read what to run: %w", err)
	}
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4) // by which its program is seen to begin
	runtime.LockOSThread() // capabilities are those of a thread
	root := filepath.Join(dir, "root")
	if err := build(root, dir, spec); err != nil {
		return err
	}
	if err := change(root); err != nil {
		return err
	}
	if err := os.Chdir(spec.Dir); err != nil {
		return err
	}
	program := slices.Concat(spec.Command, spec.Args)
	path, err := exec.LookPath(program[0])
	if err != nil {
		return err
	}
	if err := drop(spec); err != nil {
		return fmt.Errorf("drop privileges: %w", err)
	}
	return fmt.Errorf("exec %s: %w", path, syscall.Exec(path, program, os.Environ()))
}

// build makes the root of a container, which is read-only but for its volumes.
func build(root, dir string, spec Spec) error {
	for _, name := range []string{"", "dev", "dev/shm", "etc", "proc", "tmp", "var", "run", flexDir} {
		if err := directory(filepath.Join(root, name)); err != nil {
			return err
		}
	}
	if err := bind(root, root); err != nil {
		return err
	}
	binds := []func() error{
		func() error { return bindMachine(root) },
		func() error { return bindFile(flex, filepath.Join(root, flexDir, "flex")) },
		func() error {
			return bindFile(filepath.Join(dir, "message"), filepath.Join(root, "dev/termination-log"))
		},
		func() error { return mountProc(filepath.Join(root, "proc")) },
	}
	for _, do := range binds {
		if err := do(); err != nil {
			return err
		}
	}
	for i, volume := range spec.Volumes {
		if err := volume.mount(volume.at(dir, shared, i), root); err != nil {
			return fmt.Errorf("the volume at %s: %w", volume.Path, err)
		}
	}
	return readOnly(root, 0)
}

// readOnly makes a mount read-only, with AT_RECURSIVE also what is mounted below.
func readOnly(path string, flags uint) error {
	err := unix.MountSetattr(unix.AT_FDCWD, path, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if err != nil {
		return fmt.Errorf("make %s read-only: %w", path, err) // it takes Linux 5.12
	}
	return nil
}

// bindMachine gives a container the programs of this machine.
func bindMachine(root string) error {
	for _, name := range ofMachine {
		from, to := filepath.Join("/", name), filepath.Join(root, name)
		target, err := os.Readlink(from)
		switch {
		case err == nil:
			err = os.Symlink(target, to)
		case os.IsNotExist(err):
			continue // this machine has none
		default: // no link
			err = errors.Join(directory(to), bind(from, to), readOnly(to, unix.AT_RECURSIVE))
		}
		if err != nil {
			return err
		}
	}
	return bindFiles(root)
}

// bindFiles gives a container the devices and the files of /etc that every image has.
func bindFiles(root string) error {
	for _, name := range devices {
		if err := bindFile("/dev/"+name, filepath.Join(root, "dev", name)); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(target, filepath.Join(root, "dev", name)); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(root, "etc/passwd"), []byte(accounts), 0o644); err != nil { //nolint:gosec // as in every image
		return err
	}
	for _, name := range ofEtc {
		from, to := filepath.Join("/etc", name), filepath.Join(root, "etc", name)
		info, err := os.Stat(from)
		switch {
		case err != nil:
			continue // this machine has none
		case info.IsDir():
			err = errors.Join(directory(to), bind(from, to))
		default:
			err = bindFile(from, to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mount shows a volume in a container.
func (v Volume) mount(from, root string) error {
	to := filepath.Join(root, v.Path)
	if err := directory(to); err != nil {
		return err
	}
	if err := bind(from, to); err != nil || !v.ReadOnly {
		return err
	}
	return readOnly(to, unix.AT_RECURSIVE)
}

func bind(from, to string) error {
	if err := syscall.Mount(from, to, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", from, err)
	}
	return nil
}

func bindFile(from, to string) error {
	if err := os.WriteFile(to, nil, 0o600); err != nil { //nolint:gosec // below the container's root
		return err
	}
	return bind(from, to)
}

// mountProc shows the container's own processes. Where this machine is a container that hides a part
// of /proc, the kernel refuses that (mount_too_revealing in fs/namespace.c), and the container sees
// what this machine shows.
func mountProc(to string) error {
	if syscall.Mount("proc", to, "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, "") == nil {
		return nil
	}
	return bind("/proc", to)
}

// change makes a directory the root, and leaves nothing of the old one.
func change(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := syscall.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := syscall.Unmount(".", syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the old root: %w", err)
	}
	return os.Chdir("/")
}

// drop leaves the user and the capabilities that the pod says, and no way to more.
func drop(spec Spec) error {
	kept := map[uintptr]bool{}
	for number, name := range capabilities {
		kept[uintptr(number)] = slices.Contains(spec.CapsAdded, name)
	}
	for number := uintptr(0); unix.Prctl(unix.PR_CAPBSET_READ, number, 0, 0, 0) == nil; number++ {
		if kept[number] {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, number, 0, 0, 0); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if syscall.Setgroups([]int{spec.GID}) != nil {
		return nil //nolint:nilerr // there is one user only, and one group
	}
	return errors.Join(syscall.Setgid(spec.GID), syscall.Setuid(spec.UID))
}

// capabilities are the kernel's (include/uapi/linux/capability.h), by their numbers.
var capabilities = []string{
	"CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP", "LINUX_IMMUTABLE", "NET_BIND_SERVICE",
	"NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN",
	"SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
	"MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF", "CHECKPOINT_RESTORE",
}
