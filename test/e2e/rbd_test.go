//go:build e2e && long

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A claim on Ceph becomes a static PV for ceph-csi. Its image is opened, written and read with
// nothing but what the PV and the Secret that it names hold; a clone of it has it as its parent,
// and its content.
func TestCephVolumeIsOpenedWithItsSecretsKeyAndClonedByReference(t *testing.T) {
	w := newWorld(t, "ceph")
	class := w.cephClass()
	source := w.claim(class, "source")
	original := w.image(source)

	original.must("write -P 0x5a 0 1M", "write -P 0xa5 512M 64k", "flush")
	original.must("read -P 0x5a 0 1M", "read -P 0xa5 512M 64k")
	original.mustNot("Pattern verification failed", "read -P 0x5b 0 1M")
	original.with("AQAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAAAA==").mustNot("error connecting", "read 0 512")

	copied := w.claim(class, "copy", from("source"))
	clone := w.image(copied)
	parent := clone.info().Parent
	equal(t, "the clone's parent", parent.Pool+"/"+parent.Image, original.pool+"/"+original.name)
	equal(t, "the original has a parent", original.info().Parent.Image, "")
	clone.must("read -P 0x5a 0 1M", "read -P 0xa5 512M 64k", "write -P 0x11 0 1M")
	original.must("read -P 0x5a 0 1M")
	equal(t, "the claim's k8s.io/CloneOf", w.look(copied).Annotations["k8s.io/CloneOf"], w.ns+"/source")

	for _, claim := range []*corev1.PersistentVolumeClaim{copied, source} {
		w.deleteClaim(claim)
		w.vanished(claim)
	}
	if left := w.ceph("rbd", "--pool", original.pool, "ls"); strings.TrimSpace(left) != "" {
		t.Errorf("Ceph still has the images %s", left)
	}
}

// cephClass is served with the key of Ceph's user cinder, from a Secret of the config.
func (w *world) cephClass(changes ...func(*storagev1.StorageClass)) string {
	w.t.Helper()
	w.cephSecret(w.ns)
	w.class(w.ns, append(changes, parameter("type", "ceph"), parameter("connection", "rbd"), parameter("smartclone", "true"),
		parameter("cluster-id", "b9127830-b0cc-4e34-aa47-9d1a2e9949a8"))...)
	w.config(ownNamespace, w.ns, cinderConfig(map[string]string{"files-from-secret": w.ns, "data-sources": "PersistentVolumeClaim"}))
	return w.ns
}

func (w *world) cephSecret(name string) {
	w.t.Helper()
	login, err := kube.CoreV1().Secrets(ownNamespace).Get(w.ctx(), "cinder", metav1.GetOptions{})
	w.must(err, "read the Secret cinder")
	w.login(name, map[string]string{"cloud.conf": string(login.Data["cloud.conf"]), "ceph.key": w.ceph("ceph", "auth", "get-key", "client.cinder")})
}

// ceph runs a command with the administrator's key, to read the storage past our own code.
func (w *world) ceph(command ...string) string {
	w.t.Helper()
	out, err := ceph(w.ctx(), command...)
	w.must(err, strings.Join(command, " "))
	return out
}

func ceph(ctx context.Context, command ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "../cinder/exec.sh", command...).Output()
	return string(out), err
}

// image is an RBD image as a node plugin sees it: by the PV's attributes and by the Secret that the
// PV names.
type image struct {
	w                     *world
	pool, name, user, key string
}

// image waits for the claim's PV and reads it as ceph-csi's node plugin does.
func (w *world) image(claim *corev1.PersistentVolumeClaim) image {
	w.t.Helper()
	source := w.bound(claim).Spec.CSI
	if source == nil || source.Driver != "rbd.csi.ceph.com" || source.NodeStageSecretRef == nil {
		w.t.Fatalf("the PV's source is %+v", source)
	}
	equal(w.t, "the PV is static", source.VolumeAttributes["staticVolume"], "true")
	equal(w.t, "the PV's cluster", source.VolumeAttributes["clusterID"], "b9127830-b0cc-4e34-aa47-9d1a2e9949a8")
	ref := source.NodeStageSecretRef
	secret, err := kube.CoreV1().Secrets(ref.Namespace).Get(w.ctx(), ref.Name, metav1.GetOptions{})
	w.must(err, "read the Secret that the PV names")
	return image{
		w: w, pool: source.VolumeAttributes["pool"], name: source.VolumeHandle,
		user: string(secret.Data["userID"]), key: string(secret.Data["userKey"]),
	}
}

func (i image) with(key string) image { i.key = key; return i }

// info is what Ceph's administrator sees of it.
func (i image) info() (said struct {
	Parent struct{ Pool, Image string }
},
) {
	i.w.t.Helper()
	text := i.w.ceph("rbd", "info", "--format", "json", i.pool+"/"+i.name)
	i.w.must(json.Unmarshal([]byte(text), &said), "read what rbd says of the image: "+text)
	return said
}

func (i image) must(commands ...string) {
	i.w.t.Helper()
	out, err := i.open(commands)
	i.w.must(err, "open "+i.name+": "+out)
}

func (i image) mustNot(said string, commands ...string) {
	i.w.t.Helper()
	out, err := i.open(commands)
	if err == nil {
		i.w.t.Errorf("%q of %s succeeded: %s", commands, i.name, out)
	}
	contains(i.w.t, "what the client says", out, said)
}

// open is a session of qemu-io over librbd. The key is in a file of the lab's, not in an argument,
// and no keyring is.
func (i image) open(commands []string) (string, error) {
	i.w.t.Helper()
	file := i.keyFile()
	defer os.Remove(file)
	args := []string{
		"qemu-io", "--object", "secret,id=key,format=base64,file=/tmp/" + filepath.Base(file), "--image-opts", i.driver(),
	}
	for _, command := range commands {
		args = append(args, "-c", command)
	}
	out, err := exec.CommandContext(i.w.ctx(), "../cinder/exec.sh", args...).CombinedOutput()
	return string(out), err
}

// driver is the image in the words of qemu's driver for it, librbd.
func (i image) driver() string {
	return "driver=rbd,pool=" + i.pool + ",image=" + i.name + ",user=" + i.user + ",key-secret=key,auth-client-required.0=cephx"
}

// keyFile writes the key, and returns where it is on the machine.
func (i image) keyFile() string {
	i.w.t.Helper()
	file := filepath.Join(labState(), "cinder", "tmp", "rbd-key-"+i.w.ns)
	i.w.must(os.WriteFile(file, []byte(i.key), 0o600), "write the key")
	return file
}

// asDisk shows the image as a disk, which it calls DISK, as long as a command runs.
const asDisk = `
exec 2>&1
dir=$(mktemp -d /run/rbd.XXXXXX)
end() {
  umount "$dir/data" 2>/dev/null || true
  [ -z "${DISK:-}" ] || losetup --detach "$DISK"
  if [ -s "$dir/pid" ]; then
    pid=$(cat "$dir/pid")
    kill "$pid" # and it writes out what it holds
    while [ -d "/proc/$pid" ]; do sleep 0.05; done
  fi
  rm -rf --one-file-system "$dir"
}
trap end EXIT
: >"$dir/image"
mkdir "$dir/data"
qemu-storage-daemon --daemonize --pidfile "$dir/pid" --object "secret,id=key,format=base64,file=$1" --blockdev "$2,node-name=disk" \
  --export "type=fuse,id=disk,node-name=disk,mountpoint=$dir/image,writable=on"
DISK=$(losetup --find --show "$dir/image")
cd "$dir"
eval "$3"
`

// onNode runs a command on a node that has the image as a disk, as a node plugin maps it: by
// librbd, FUSE and a loop device, with the monitor that ceph-csi's configuration names for the PV's
// cluster. No keyring and no configuration of Ceph's is there.
func (i image) onNode(node, command string) string {
	i.w.t.Helper()
	file := i.keyFile()
	defer os.Remove(file)
	out, err := onNode(i.w.ctx(), node, "bash", "-ec", asDisk, "as-disk", file, i.driver()+",server.0.host=10.250.0.1,server.0.port=6789", command)
	i.w.must(err, "use "+i.name+" on node"+node+": "+out)
	return out
}

// The file system of the PV is made, written and read through the image, on one node after the
// other.
func TestCephVolumeHoldsAFileSystemThatAnotherNodeReads(t *testing.T) {
	w := newWorld(t, "ceph-files")
	claim := w.claim(w.cephClass(parameter("fsType", "ext4")), "data")
	i := w.image(claim)
	fsType := w.bound(claim).Spec.CSI.FSType
	equal(t, "the PV's file system", fsType, "ext4")
	i.onNode("1", "mkfs."+fsType+` -q -F -m0 "$DISK" && mount "$DISK" data && echo from node1 >data/file && sync && umount data`)
	contains(t, "the file on the other node", i.onNode("2", `mount "$DISK" data && cat data/file && echo from node2 >data/file && sync`), "from node1")
	contains(t, "the file back on the first node", i.onNode("1", `mount "$DISK" data && cat data/file`), "from node2")
	w.deleteClaim(claim)
	w.vanished(claim)
}
