package mounts

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/fc"
	"k8s.io/kubernetes/pkg/volume/flexvolume"
	"k8s.io/kubernetes/pkg/volume/iscsi"
	"k8s.io/kubernetes/pkg/volume/local"
	"k8s.io/kubernetes/pkg/volume/nfs"
	volumetest "k8s.io/kubernetes/pkg/volume/testing"
	"k8s.io/mount-utils"
	"sigs.k8s.io/yaml"
)

const goldens = "../../../provisioner-image/mapper/testdata/"

// onlyRead are the goldens of volumes that no node may write to.
var onlyRead = []string{"iscsi-readers", "iscsi-marked-read-only", "fibre-channel-readers"}

// Each PV is mounted as it says, by the plugin of its source. A disk of a volume that is only to be
// read gets no file system, and is mounted "ro" whatever the pod says.
func TestEachPVIsMountedAsItSays(t *testing.T) {
	for name, pv := range all(t) {
		t.Run(name, func(t *testing.T) {
			checkReaders(t, pv)
			host := hostOf(t, name)
			switch s := pv.Spec.PersistentVolumeSource; {
			case s.ISCSI != nil:
				checkPortals(t, s.ISCSI)
				checkDisk(t, name, pv, started(t, host, iscsi.ProbeVolumePlugins()))
			case s.FC != nil:
				checkDisk(t, name, pv, started(t, host, fc.ProbeVolumePlugins()))
			case s.NFS != nil:
				plugins := nfs.ProbeVolumePlugins(volume.VolumeConfig{})
				checkMount(t, pv, host, started(t, host, plugins), s.NFS.Server+":"+s.NFS.Path)
			case s.Local != nil:
				checkMount(t, pv, host, started(t, host, local.ProbeVolumePlugins()), s.Local.Path)
			case s.FlexVolume != nil:
				checkCall(t, pv, host)
			case s.CSI == nil: // of those readers names the sources
				t.Error("no test takes this PV")
			}
		})
	}
}

// all returns the goldens, and what recipes write, with the API server's defaults.
func all(t *testing.T) map[string]*v1.PersistentVolume {
	t.Helper()
	ours, err := filepath.Glob(goldens + "*.pv.yaml")
	if err != nil || len(ours) < 10 {
		t.Fatal(ours, err)
	}
	recipes, err := filepath.Glob("testdata/*.pv.yaml")
	if err != nil || len(recipes) == 0 {
		t.Fatal(recipes, err)
	}
	out := map[string]*v1.PersistentVolume{}
	for _, file := range append(ours, recipes...) {
		pv := &v1.PersistentVolume{}
		read(t, file, pv)
		out[strings.TrimSuffix(filepath.Base(file), ".pv.yaml")] = pv
	}
	for _, name := range onlyRead {
		if out[name] == nil {
			t.Errorf("there is no golden %s", name)
		}
	}
	return out
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = yaml.UnmarshalStrict(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// hostOf returns a node whose API server has the Secret of a golden.
func hostOf(t *testing.T, name string) volume.VolumeHost {
	t.Helper()
	var objects []runtime.Object
	if file := goldens + name + ".secret.yaml"; exists(file) {
		secret := &v1.Secret{}
		read(t, file, secret)
		objects = append(objects, secret)
	}
	return volumetest.NewFakeKubeletVolumeHost(t, t.TempDir(), fake.NewClientset(objects...), nil)
}

func exists(file string) bool { _, err := os.Stat(file); return err == nil }

func started(t *testing.T, host volume.VolumeHost, plugins []volume.VolumePlugin) volume.VolumePlugin {
	t.Helper()
	if err := plugins[0].Init(host); err != nil {
		t.Fatal(err)
	}
	return plugins[0]
}

// checkReaders fails if a field of a source has no reader.
func checkReaders(t *testing.T, pv *v1.PersistentVolume) {
	t.Helper()
	data, err := json.Marshal(pv.Spec.PersistentVolumeSource)
	var tree map[string]any
	if err == nil {
		err = json.Unmarshal(data, &tree)
	}
	if err != nil {
		t.Fatal(err)
	}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch inner, isObject := value.(map[string]any); {
		case path == "csi.volumeAttributes":
			for key := range inner {
				if readers[pv.Spec.CSI.Driver+" "+key] == "" {
					t.Errorf("%s reads no attribute %s", pv.Spec.CSI.Driver, key)
				}
			}
		case isObject && readers[path] == "":
			for key, one := range inner {
				walk(strings.TrimPrefix(path+"."+key, "."), one)
			}
		case readers[path] == "":
			t.Errorf("nobody reads %s", path)
		}
	}
	walk("", tree)
}

// checkDisk mounts a blank disk, and one with a file system, and then the directory of a pod.
func checkDisk(t *testing.T, name string, pv *v1.PersistentVolume, plugin volume.VolumePlugin) {
	t.Helper()
	corev1.SetObjectDefaults_PersistentVolume(pv)
	if *pv.Spec.VolumeMode == v1.PersistentVolumeBlock {
		return
	}
	mounter, err := plugin.(volume.DeviceMountableVolumePlugin).NewDeviceMounter()
	if err != nil {
		t.Fatal(err)
	}
	spec, reads := volume.NewSpecFromPersistentVolume(pv, false), slices.Contains(onlyRead, name)
	disk, dir := filepath.Join(t.TempDir(), "disk"), filepath.Join(t.TempDir(), "mount")
	if err := os.WriteFile(disk, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(disk, 320<<20); err != nil {
		t.Fatal(err)
	}
	err = mounter.MountDevice(spec, disk, dir, volume.DeviceMounterArgs{})
	if found := formatOf(disk); (err == nil) == reads || (found == "") != reads {
		t.Fatalf("a blank disk: %v, and it has the file system %q", err, found)
	}
	if reads {
		run(t, "mkfs."+fsTypeOf(pv), disk)
		if err := mounter.MountDevice(spec, disk, dir, volume.DeviceMounterArgs{}); err != nil {
			t.Fatal(err)
		}
	}
	if found := formatOf(disk); found != fsTypeOf(pv) {
		t.Errorf("the file system is %s, want %s", found, fsTypeOf(pv))
	}
}

func fsTypeOf(pv *v1.PersistentVolume) string {
	if pv.Spec.ISCSI != nil {
		return pv.Spec.ISCSI.FSType
	}
	return pv.Spec.FC.FSType
}

func run(t *testing.T, program string, arguments ...string) {
	t.Helper()
	if out, err := exec.Command(program, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", program, err, out)
	}
}

// formatOf returns the file system of a disk, or nothing.
func formatOf(disk string) string {
	out, _ := exec.Command("blkid", "-p", "-s", "TYPE", "-o", "value", disk).Output()
	return strings.TrimSpace(string(out))
}

// checkMount mounts a PV for a pod, and compares what is mounted.
func checkMount(t *testing.T, pv *v1.PersistentVolume, host volume.VolumeHost, plugin volume.VolumePlugin, source string) {
	t.Helper()
	mounter, err := plugin.NewMounter(volume.NewSpecFromPersistentVolume(pv, false), &v1.Pod{})
	if err != nil {
		t.Fatal(err)
	}
	if err := mounter.SetUp(volume.MounterArgs{}); err != nil {
		t.Fatal(err)
	}
	mounted := host.GetMounter().(*mount.FakeMounter).MountPoints
	if len(mounted) != 1 || mounted[0].Device != source {
		t.Fatalf("mounted %+v, want %s", mounted, source)
	}
	for _, option := range pv.Spec.MountOptions {
		if !slices.Contains(mounted[0].Opts, option) {
			t.Errorf("mounted by %v, want %s in it", mounted[0].Opts, option)
		}
	}
}

// checkCall compares what the kubelet hands a FlexVolume driver. It asks every driver to write.
func checkCall(t *testing.T, pv *v1.PersistentVolume, host volume.VolumeHost) {
	t.Helper()
	spec := volume.NewSpecFromPersistentVolume(pv, false)
	options, err := flexvolume.NewOptionsForDriver(spec, host, nil)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range pv.Spec.FlexVolume.Options {
		if options[key] != value {
			t.Errorf("the option %s is %q, want %q", key, options[key], value)
		}
	}
	if options["kubernetes.io/readwrite"] != "rw" || options["access_mode"] == "ro" {
		t.Errorf("the driver writes to a volume that is only to be read: %v", options)
	}
}
