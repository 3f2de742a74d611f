//go:build boxes

package remote

import (
	"fmt"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/test/recipes/kube"
)

// mustServeANode is that another machine's kernel uses the claim's volume. It stays logged in, and
// the volume is not deleted meanwhile.
func (w *world) mustServeANode(c contract.Request) {
	w.t.Helper()
	w.step("mounted by the kernel", func() {
		w.diskOf(c).mustBeRefused("wrongwrongwrong1")
		w.diskOf(c).mustLogIn()
		w.diskOf(c).mount()
	})
	w.step("written", func() {
		w.diskOf(c).write("of the first claim")
		w.diskOf(c).mustRead("of the first claim")
		e := w.run(contract.Delete, c)
		w.mustEnd(e, contract.ExitTempFail, "claim: a node is still logged in")
		w.mustHave(64*mebi, c)
	})
}

// disk is the claim's PV, as a guest uses it.
type disk struct {
	w        *world
	guest    string
	c        contract.Request
	portal   string
	iqn      string
	user     string
	password string
}

// diskOf reads the fields of the claim's PV, and the Secret that it names.
func (w *world) diskOf(c contract.Request) disk {
	w.t.Helper()
	d := disk{w: w, guest: "node", c: c}
	for _, pv := range w.api.All("persistentvolumes") {
		if pv.At("metadata", "name") == c.PVName {
			d.portal = fmt.Sprint(pv.At("spec", "iscsi", "targetPortal"))
			d.iqn = fmt.Sprint(pv.At("spec", "iscsi", "iqn"))
		}
	}
	for _, secret := range w.api.All("secrets") {
		if secret.At("metadata", "name") == c.PVName {
			d.user = kube.Text(w.t, secret, "node.session.auth.username")
			d.password = kube.Password(w.t, secret)
		}
	}
	if d.portal == "" || d.user == "" {
		w.t.Fatalf("there is no PV of %s, or no Secret", c.Name)
	}
	return d
}

// login logs the node in with a password, and returns the exit code of iscsiadm.
func (d disk) login(password string) int {
	d.w.t.Helper()
	_, code := guest(d.w.t, d.guest, `
		portal=$1 iqn=$2 user=$3 password=$4
		admin() { iscsiadm -m node -T "$iqn" -p "$portal:3260" "$@"; }
		admin -o new >/dev/null
		admin -o update -n node.session.auth.authmethod -v CHAP
		admin -o update -n node.session.auth.username -v "$user"
		admin -o update -n node.session.auth.password -v "$password"
		admin -o update -n node.session.timeo.replacement_timeout -v 600
		exec iscsiadm -m node -T "$iqn" -p "$portal:3260" --login`, d.portal, d.iqn, d.user, password)
	return code
}

// mustLogIn logs the node in as the kubelet does, and waits for the kernel's disk.
func (d disk) mustLogIn() {
	d.w.t.Helper()
	if code := d.login(d.password); code != 0 {
		d.w.t.Fatalf("the login to %s ends with %d", d.iqn, code)
	}
	mustGuest(d.w.t, d.guest, `
		for n in $(seq 120); do
		  [ ! -b "$1" ] || exit 0
		  sleep 1
		done
		exit 1`, d.device())
}

// mustBeRefused fails the test if the target takes another password. 24 is the exit code of
// iscsiadm for that.
func (d disk) mustBeRefused(password string) {
	d.w.t.Helper()
	code := d.login(password)
	if code != 24 {
		d.w.t.Fatalf("with a wrong password the login to %s ends with %d", d.iqn, code)
	}
	d.forget()
}

func (d disk) device() string {
	return fmt.Sprintf("/dev/disk/by-path/ip-%s:3260-iscsi-%s-lun-1", d.portal, d.iqn)
}

// forget removes what the node has of the target.
func (d disk) forget() {
	d.w.t.Helper()
	mustGuest(d.w.t, d.guest, `iscsiadm -m node -T "$1" -p "$2:3260" -o delete`, d.iqn, d.portal)
}

// logOut logs the node out, and waits until its disk is not there.
func (d disk) logOut() {
	d.w.t.Helper()
	mustGuest(d.w.t, d.guest, `iscsiadm -m node -T "$1" -p "$2:3260" --logout`, d.iqn, d.portal)
	d.forget()
}

// mount formats the disk if it has no file system, and mounts it.
func (d disk) mount() {
	d.w.t.Helper()
	mustGuest(d.w.t, d.guest, `
		blkid "$1" || mkfs.ext4 -q "$1"
		mkdir -p "/mnt/$2"
		mount "$1" "/mnt/$2"`, d.device(), d.c.PVName)
}

func (d disk) unmount() {
	d.w.t.Helper()
	mustGuest(d.w.t, d.guest, `umount "/mnt/$1"`, d.c.PVName)
}

// write writes a text to the disk itself.
func (d disk) write(text string) {
	d.w.t.Helper()
	mustGuest(d.w.t, d.guest, `
		echo "$2" >"/mnt/$1/file"
		sync -f "/mnt/$1/file"`, d.c.PVName, text)
}

// mustRead fails the test unless the disk itself has this text: not the node's memory.
func (d disk) mustRead(text string) {
	d.w.t.Helper()
	got := mustGuest(d.w.t, d.guest, `
		sync
		echo 3 >/proc/sys/vm/drop_caches
		cat "/mnt/$1/file"`, d.c.PVName)
	if got != text {
		d.w.t.Fatalf("the file has %q, want %q", got, text)
	}
}

// grow makes the mounted file system as large as the disk, and returns the sizes of both in bytes.
func (d disk) grow() (device, files int64) {
	d.w.t.Helper()
	said := mustGuest(d.w.t, d.guest, `
		iscsiadm -m node -T "$3" -p "$4:3260" --rescan >&2
		sleep 2
		resize2fs "$1" >&2
		blockdev --getsize64 "$1"
		df --output=size -B1 "/mnt/$2" | tail -n 1`, d.device(), d.c.PVName, d.iqn, d.portal)
	if n, err := fmt.Sscan(said, &device, &files); n != 2 {
		d.w.t.Fatal(err)
	}
	return device, files
}

// use is what a pod does: it logs in, mounts, and writes its first file.
func (d disk) use(text string) {
	d.w.t.Helper()
	d.mustLogIn()
	d.mount()
	d.write(text)
}

// leave is the end of that pod.
func (d disk) leave() {
	d.w.t.Helper()
	d.unmount()
	d.logOut()
}

// mustServeAnother is that a second machine reads what the node has written.
func (w *world) mustServeAnother(c contract.Request, text string) {
	w.t.Helper()
	w.step("read by a second client", func() {
		second := w.diskOf(c)
		second.guest = "box"
		second.mustLogIn()
		second.mount()
		second.mustRead(text)
		second.leave()
	})
}
