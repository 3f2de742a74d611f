package test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// What the driver calls on a node, and what stands in for it here: $T is the test's folder, and
// each call that changes something is in $T/calls. A mount is a file in its directory.
var nodeTools = map[string]string{
	// A login where a session of its interface exists has the exit code 15, whatever the password. The
	// target asks for one.
	"iscsiadm": `iface=$(grep -o -- '-I [^ ]*' <<<"$*")
case "$*" in
  *"-o new"*) rm -f "$T/chap" ;;
  *auth.password*) touch "$T/chap" ;;
  *--login*) ! grep -qsxF -- "$iface" "$T/session" || exit 15
    [ -e "$T/chap" ] || { echo 'no password' >&2; exit 24; }
    [ ! -e "$T/refused" ] || { echo 'login refused' >&2; exit 24; }; echo "$iface" >>"$T/session"; ln -sf "$T/disk" "$T/by-path/$(cat "$T/link")" ;;
  *--logout*) [ -e "$T/session" ] || exit 21; rm -f "$T/session" "$T/by-path"/* ;;
esac`,
	"mount":      `[ ! -e "$T/unmountable" ] || exit 32; touch "${*: -1}/mounted"`,
	"umount":     `rm "$1/mounted"`,
	"mkfs.ext4":  `echo ext4 >"$T/content"`,
	"mkfs.xfs":   `echo xfs >"$T/content"`,
	"fsck":       `exit "$(cat "$T/fsck" 2>/dev/null || echo 0)"`,
	"blkid":      `cat "$T/content" 2>/dev/null || exit 2`,
	"mountpoint": `[ -e "$2/mounted" ]`,
	"findmnt":    `ls "$T"/pods/*/volumes/*/*/mounted`,
}

// asking are the tools that change nothing.
var asking = map[string]bool{"blkid": true, "mountpoint": true, "findmnt": true}

// flexNode is a node with the FlexVolume driver of the examples.
type flexNode struct {
	t   *testing.T
	dir string
	pv  corev1.PersistentVolume
	// password is that of the volume's Secret.
	password string
	options  map[string]string
}

// newFlexNode has a blank disk, and the options that the kubelet makes of the golden PV and its
// Secret.
func newFlexNode(t *testing.T) *flexNode {
	t.Helper()
	n := &flexNode{t: t, dir: t.TempDir()}
	var secret corev1.Secret
	for file, into := range map[string]any{"pv": &n.pv, "secret": &secret} {
		if err := yaml.UnmarshalStrict([]byte(content(t, "provisioner-image/mapper/testdata/flex-volume-iscsi."+file+".yaml")), into); err != nil {
			t.Fatal(err)
		}
	}
	n.options = maps.Clone(n.pv.Spec.FlexVolume.Options)
	n.options["kubernetes.io/fsType"], n.options["kubernetes.io/readwrite"] = "ext4", "rw"
	for name, value := range secret.Data {
		n.options["kubernetes.io/secret/"+name] = base64.StdEncoding.EncodeToString(value)
	}
	n.password = string(secret.Data["auth_password"])
	n.install()
	return n
}

func (n *flexNode) install() {
	n.t.Helper()
	for _, folder := range []string{"bin", "by-path"} {
		if err := os.Mkdir(filepath.Join(n.dir, folder), 0o700); err != nil {
			n.t.Fatal(err)
		}
	}
	for name, body := range nodeTools {
		text := "#!/bin/bash\n"
		if !asking[name] {
			text += `echo "` + name + ` $*" >>"$T/calls"` + "\n"
		}
		n.write("bin/"+name, text+body+"\n")
	}
	n.write("disk", "blank")
	n.write("link", "ip-127.0.0.1:3260-iscsi-"+n.options["target_iqn"]+"-lun-1")
}

func (n *flexNode) write(name, text string) {
	n.t.Helper()
	if err := os.WriteFile(filepath.Join(n.dir, name), []byte(text), 0o700); err != nil {
		n.t.Fatal(err)
	}
}

func (n *flexNode) has(name string) bool {
	_, err := os.Stat(filepath.Join(n.dir, name))
	return err == nil
}

// calls returns what was called since it was asked last.
func (n *flexNode) calls() []string {
	n.t.Helper()
	file := filepath.Join(n.dir, "calls")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	if err := os.Remove(file); err != nil {
		n.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(strings.ReplaceAll(string(text), n.dir, "")), "\n")
}

// answer is what the kubelet reads.
type answer struct {
	Status, Message string
	Capabilities    map[string]bool
}

// driver calls the driver as the kubelet does, and checks what the kubelet may log.
func (n *flexNode) driver(args ...string) answer {
	n.t.Helper()
	cmd := exec.CommandContext(n.t.Context(), filepath.Join(repository, "deploy/examples/flexvolume-iscsi.sh"), args...)
	cmd.Env = append(os.Environ(), "PATH="+n.dir+"/bin:"+os.Getenv("PATH"), "T="+n.dir,
		"FLEXVOLUME_ISCSI_STATE="+n.dir+"/state", "FLEXVOLUME_ISCSI_DISKS="+n.dir+"/by-path")
	out, err := cmd.CombinedOutput()
	if err != nil {
		n.t.Errorf("the kubelet would log the password with the call: %v", err)
	}
	for _, begin := range []string{n.password[:6], base64.StdEncoding.EncodeToString([]byte(n.password))[:6]} {
		if strings.Contains(string(out), begin) {
			n.t.Errorf("a part of the password is in the answer: %s", out)
		}
	}
	var a answer
	if err := json.Unmarshal(out, &a); err != nil {
		n.t.Fatalf("%v: %s", err, out)
	}
	return a
}

// volume returns the directory of the volume in a pod, which the kubelet makes.
func (n *flexNode) volume(pod string) string {
	n.t.Helper()
	dir := filepath.Join(n.dir, "pods", pod, "volumes", "flex-provisioner.io~iscsi", n.pv.Name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		n.t.Fatal(err)
	}
	return dir
}

func (n *flexNode) mount(pod string) answer {
	n.t.Helper()
	options, err := json.Marshal(n.options)
	if err != nil {
		n.t.Fatal(err)
	}
	return n.driver("mount", n.volume(pod), string(options))
}

func (n *flexNode) must(a answer) {
	n.t.Helper()
	if a.Status != "Success" {
		n.t.Fatalf("%+v", a)
	}
}

func (n *flexNode) want(calls ...string) {
	n.t.Helper()
	if diff := cmp.Diff(calls, n.calls()); diff != "" {
		n.t.Error(diff)
	}
}

const podA, podB = "8d5a6f3c-1f0e-4c11-9a55-00000000000a", "8d5a6f3c-1f0e-4c11-9a55-00000000000b"

// The driver logs in with what the PV and its Secret say, makes a file system once, and takes
// everything away again.
func TestFlexVolumeDriverMountsWithWhatTheKubeletGives(t *testing.T) {
	n := newFlexNode(t)
	if a := n.driver("init"); a.Status != "Success" || a.Capabilities["attach"] {
		t.Errorf("%+v", a)
	}
	if a := n.driver("getvolumename", "{}"); a.Status != "Not supported" {
		t.Errorf("%+v", a)
	}
	n.must(n.mount(podA))
	name := fmt.Sprintf("flex-%x", sha256.Sum256([]byte(n.options["target_iqn"]+"\n"+n.options["target_portal"]+"\n")))[:37]
	of := "iscsiadm -m node -T " + n.options["target_iqn"] + " -p 127.0.0.1:3260 -I " + name
	iface := "iscsiadm -m iface -I " + name
	login := []string{
		iface + " -o new",
		iface + " -o update -n iface.initiatorname -v " + n.options["initiator_name"],
		of + " -o new",
		of + " -o update -n node.startup -v manual",
		of + " -o update -n node.session.auth.authmethod -v CHAP",
		of + " -o update -n node.session.auth.username -v 2NCVVDP3gvm7fnh3WAQ2",
		of + " -o update -n node.session.auth.password -v " + n.password,
		of + " --login",
	}
	at := "/pods/" + podA + "/volumes/flex-provisioner.io~iscsi/" + n.pv.Name
	n.want(append(login, "mkfs.ext4 -F -m 0 /disk", "mount -t ext4 -o rw /disk "+at)...)

	n.must(n.driver("unmount", n.volume(podA)))
	logout := []string{of + " --logout", of + " -o delete", iface + " -o delete"}
	n.want(append([]string{"umount " + at}, logout...)...)

	n.options["kubernetes.io/readwrite"], n.options["kubernetes.io/fsType"] = "ro", ""
	n.must(n.mount(podA))
	n.want(append(login, "fsck -a /disk", "mount -t ext4 -o rw /disk "+at, "mount -o remount,bind,ro "+at)...)
}

// Calls may be repeated. The session lasts as long as a pod on the node uses the volume.
func TestFlexVolumeDriverLogsOutAfterTheLastPod(t *testing.T) {
	n := newFlexNode(t)
	n.must(n.mount(podA))
	n.must(n.mount(podA))
	n.calls()
	n.must(n.mount(podB))
	for _, call := range n.calls() {
		if strings.HasPrefix(call, "fsck") || strings.HasPrefix(call, "mkfs") {
			t.Errorf("on a disk that is in use: %s", call)
		}
	}
	n.must(n.driver("unmount", n.volume(podA)))
	if !n.has("session") {
		t.Error("the session of the other pod has ended")
	}
	for range 2 {
		n.must(n.driver("unmount", n.volume(podB)))
		if n.has("session") {
			t.Error("the session is left")
		}
	}
}

// A call was killed between its login and what it notes of that. The next one begins anew.
func TestFlexVolumeDriverContinuesAfterALoginThatWasKilled(t *testing.T) {
	n := newFlexNode(t)
	n.must(n.mount(podA))
	target := "state/" + n.options["target_iqn"] + "@127.0.0.1:3260/"
	if err := os.Rename(filepath.Join(n.dir, target+"login"), filepath.Join(n.dir, target+"opening")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(n.volume(podA), "mounted")); err != nil {
		t.Fatal(err)
	}
	n.must(n.mount(podA))
	n.must(n.driver("unmount", n.volume(podA)))
	if n.has("session") || n.has(target+"login") || n.has(target+"opening") {
		t.Error("something is left")
	}
}

// What cannot be mounted leaves no session, and no disk that has something on it is formatted.
func TestFlexVolumeDriverLeavesNothingOfAFailure(t *testing.T) {
	const injected = "1$(touch $T/injected)"
	for name, tc := range map[string]struct {
		spoil   func(*flexNode)
		message string
	}{
		"a wrong password":      {func(n *flexNode) { n.write("refused", "") }, "login refused"},
		"it cannot be mounted":  {func(n *flexNode) { n.write("unmountable", "") }, ""},
		"another file system":   {func(n *flexNode) { n.write("content", "xfs\n") }, "the disk has xfs, not ext4"},
		"a partition table":     {func(n *flexNode) { n.write("content", "ext4\ndos\n") }, "it is left unchanged"},
		"errors on the disk":    {func(n *flexNode) { n.write("content", "ext4\n"); n.write("fsck", "4") }, "fsck found errors"},
		"blank and read only":   {func(n *flexNode) { n.options["access_mode"] = "ro" }, "exported read-only"},
		"a target of many":      {func(n *flexNode) { n.options["target_iqn"] = "iqn.1992-08.com.netapp:sn.1" }, "serves several volumes"},
		"a LUN that is none":    {func(n *flexNode) { n.options["target_lun"] = injected }, "target_lun must have the form"},
		"a portal that is none": {func(n *flexNode) { n.options["target_portal"] = "-o:1" }, "target_portal must have the form"},
		"a target with a path":  {func(n *flexNode) { n.options["target_iqn"] += "/../../x" }, "target_iqn must have the form"},
		"another fsType":        {func(n *flexNode) { n.options["kubernetes.io/fsType"] = "minix" }, "fsType must have the form"},
		"a Secret of no use":    {func(n *flexNode) { n.options["kubernetes.io/secret/auth_password"] = "*" + n.password }, "the Secret's auth_password cannot be read"},
		"a password of two lines": {func(n *flexNode) {
			n.options["kubernetes.io/secret/auth_password"] = base64.StdEncoding.EncodeToString([]byte("x\nnode.startup = automatic"))
		}, "the Secret's auth_password has control characters"},
		"no options": {func(n *flexNode) { n.options = nil }, "target_portal must have the form"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newFlexNode(t)
			tc.spoil(n)
			a := n.mount(podA)
			if a.Status != "Failure" || !strings.Contains(a.Message, tc.message) {
				t.Errorf("%+v", a)
			}
			if n.has("session") || n.has("injected") || n.has("pods/"+podA+"/volumes/flex-provisioner.io~iscsi/"+n.pv.Name+"/mounted") {
				t.Error("something is left")
			}
			if calls := strings.Join(n.calls(), "\n"); strings.Contains(calls, "mkfs") && tc.message != "" {
				t.Errorf("the disk was formatted: %s", calls)
			}
		})
	}
}

// A tenant's pod may have an inline volume of any target, without a Secret. Where a session exists a
// login needs no password: the pod got the disk of another's volume, and its unmount ended the session
// of a volume of the kubelet's own plugin.
func TestFlexVolumeDriverUsesNoSessionOfAnotherLogin(t *testing.T) {
	message := map[string]string{"of this driver": "delete that pod first", "of the kubelet's": "no password"}
	for name, opens := range map[string]func(*flexNode){
		"of this driver":   func(n *flexNode) { n.must(n.mount(podA)) },
		"of the kubelet's": func(n *flexNode) { n.write("session", "-I default\n") },
	} {
		t.Run(name, func(t *testing.T) {
			n := newFlexNode(t)
			opens(n)
			n.calls()
			delete(n.options, "kubernetes.io/secret/auth_username")
			delete(n.options, "kubernetes.io/secret/auth_password")
			for range 2 {
				if a := n.mount(podB); a.Status != "Failure" || !strings.Contains(a.Message, message[name]) {
					t.Errorf("%+v", a)
				}
				n.must(n.driver("unmount", n.volume(podB)))
			}
			for _, call := range n.calls() {
				if name == "of this driver" || strings.Contains(call, "-I default") || strings.Contains(call, "--logout") {
					t.Errorf("it calls %s", call)
				}
			}
			if !n.has("session") {
				t.Error("the session has ended")
			}
		})
	}
}
