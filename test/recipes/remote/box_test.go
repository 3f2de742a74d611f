package remote

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// sshOptions are those without which a script may talk to another box, ask a person, or wait for
// ever. WORLD is the world's directory, and BOX the config's.
var sshOptions = []string{
	"-F", "none", "-T", "-i", "WORLD/etc/secret/key", "-o", "UserKnownHostsFile=WORLD/etc/secret/known_hosts", "-o", "StrictHostKeyChecking=yes",
	"-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=10", "--", "BOX",
}

// ssh runs a command in the login shell of the box, as sshd does: in a process group of its own. The
// file box/real says that the box has an sshd, box/shell names another shell than sh, box/tgtd a
// process in whose namespaces the box is, and box/ssh says what it does instead.
func ssh(world string, arguments []string, in io.Reader, out, log io.Writer) int {
	n := len(sshOptions)
	want := strings.NewReplacer("WORLD", world, "BOX", os.Getenv("FLEX_BOX")).Replace(strings.Join(sshOptions, " "))
	if len(arguments) != n+1 || want != strings.Join(arguments[:n], " ") {
		return unexpected(log, "ssh", arguments)
	}
	if _, err := os.Stat(filepath.Join(world, "box/real")); err == nil {
		return actual(world, "ssh", arguments)
	}
	mode, _ := os.ReadFile(filepath.Join(world, "box/ssh"))
	switch string(mode) {
	case "endless":
		babble(out)
		return 1
	case "endless messages":
		babble(log)
		return 1
	}
	for answer, says := range map[string]string{
		"denied": "root@box: Permission denied (publickey).", "another box": "Host key verification failed.", "down": "ssh: connect to host box port 22: Connection refused",
	} {
		if string(mode) == answer {
			fmt.Fprintln(log, says)
			return 255
		}
	}
	login, _ := os.ReadFile(filepath.Join(world, "box/shell"))
	shell := exec.Command(cmp.Or(string(login), "sh"), "-c", arguments[n])
	if pid, err := os.ReadFile(filepath.Join(world, "box/tgtd")); err == nil {
		shell = exec.Command("nsenter", "--target", string(pid), "--mount", "--net", "sh", "-c", arguments[n])
	}
	shell.Env = []string{"PATH=" + os.Getenv("PATH"), worldVariable + "=" + world, killVariable + "=" + os.Getenv(killVariable)}
	shell.Stdin, shell.Stderr, shell.Dir = in, log, "/"
	shell.Stdout = struct{ io.Writer }{out} // a pipe, which has no reader when this program has ended
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	code := exitOf(shell.Run())
	if code > 128 || string(mode) == "lost" { // the box or the connection is no longer there
		fmt.Fprintln(log, "client_loop: send disconnect: Broken pipe")
		return 255
	}
	return code
}

// reflink is cp on a file system that has reflinks, if the file box/reflinks is there. If it says
// so, the file system really has them.
func reflink(world string, arguments []string, _ io.Reader, _, log io.Writer) int {
	if len(arguments) != 3 || arguments[0] != "--reflink=always" {
		return unexpected(log, "cp", arguments)
	}
	kind, err := os.ReadFile(filepath.Join(world, "box/reflinks"))
	if err != nil {
		fmt.Fprintln(log, "cp: failed to clone: Operation not supported")
		return 1
	}
	if string(kind) == "real" {
		return actual(world, "cp", arguments)
	}
	return actual(world, "cp", arguments[1:])
}

// df shows that there is room, unless the file box/no-room is there.
func df(world string, arguments []string, _ io.Reader, out, log io.Writer) int {
	if len(arguments) != 3 || arguments[0] != "--output=avail" || arguments[1] != "-B1" {
		return unexpected(log, "df", arguments)
	}
	room := 1 << 40
	if _, err := os.Stat(filepath.Join(world, "box/no-room")); err == nil {
		room = 1
	}
	fmt.Fprintf(out, "%20s\n%20d\n", "Avail", room)
	return 0
}

// tgtTarget is a target of tgtd, which has the size that its file had when it was created.
type tgtTarget struct {
	Disk, User string
	Size       int64
	InUse      bool
	// Leaves is that the node logs out when it was seen once.
	Leaves bool
}

type tgtTargets map[string]tgtTarget

// tgtLogins are the passwords of tgtd's accounts, which are not those of one target.
type tgtLogins map[string]string

func tgtadm(world string, arguments []string, _ io.Reader, out, log io.Writer) int {
	if _, err := os.Stat(filepath.Join(world, "box/no-tgtd")); err == nil {
		fmt.Fprintln(log, "tgtadm: failed to send request hdr to tgt daemon, Transport endpoint is not connected")
		return 107
	}
	switch line := strings.Join(arguments, " "); {
	case line == "--lld iscsi --mode account --op show":
		fmt.Fprintln(out, "Account list:")
		state(world, "tgt-logins", func(all *tgtLogins) {
			for user := range *all {
				fmt.Fprintln(out, "    "+user)
			}
		})
		return 0
	case strings.HasPrefix(line, "--lld iscsi --mode account --op delete --user "):
		state(world, "tgt-logins", func(all *tgtLogins) { delete(*all, arguments[7]) })
		return 0
	case line != "--lld iscsi --mode target --op show":
		return unexpected(log, "tgtadm", arguments)
	}
	state(world, "tgt", func(all *tgtTargets) {
		n := 0
		for iqn, target := range *all {
			n++
			fmt.Fprintf(out, "Target %d: %s\n    System information:\n        Driver: iscsi\n    I_T nexus information:\n", n, iqn)
			if target.InUse {
				fmt.Fprintln(out, "        I_T nexus: 3\n            Initiator: iqn.2010-11.node1")
				target.InUse = !target.Leaves
				(*all)[iqn] = target
			}
			fmt.Fprintf(out, "    LUN information:\n        LUN: 1\n            Size: %d MB\n            Backing store path: %s\n", target.Size/1e6, target.Disk)
			fmt.Fprintf(out, "    Account information:\n        %s\n    ACL information:\n        ALL\n", target.User)
		}
	})
	return 0
}

// tgtAdmin succeeds also where it does nothing, since a node is logged in. It leaves every login as
// it is.
func tgtAdmin(world string, arguments []string, _ io.Reader, _, log io.Writer) int {
	if len(arguments) != 2 {
		return unexpected(log, "tgt-admin", arguments)
	}
	iqn := arguments[1]
	state(world, "tgt", func(all *tgtTargets) {
		if (*all)[iqn].InUse {
			return
		}
		delete(*all, iqn)
		if target, password := configured(world, iqn); arguments[0] == "--update" && target.Disk != "" {
			if *all == nil {
				*all = tgtTargets{}
			}
			(*all)[iqn] = target
			state(world, "tgt-logins", func(logins *tgtLogins) {
				if *logins == nil {
					*logins = tgtLogins{}
				}
				if _, exists := (*logins)[target.User]; !exists {
					(*logins)[target.User] = password
				}
			})
		}
	})
	return 0
}

// configured returns what tgt's configuration says of a target, and the password of its login.
func configured(world, iqn string) (tgtTarget, string) {
	files, _ := filepath.Glob(filepath.Join(world, "box/conf.d/*.conf"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		fields := strings.Fields(string(text))
		if err != nil || len(fields) != 8 || fields[1] != iqn+">" || fields[2] != "backing-store" || fields[4] != "incominguser" {
			continue
		}
		if info, err := os.Stat(fields[3]); err == nil {
			return tgtTarget{Disk: fields[3], User: fields[5], Size: info.Size()}, fields[6]
		}
	}
	return tgtTarget{}, ""
}
