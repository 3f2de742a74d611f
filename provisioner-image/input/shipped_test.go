package input_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Every example class of Cinder has only parameters that the image reads. The older provisioner's
// example leads to its volume type.
func TestExampleClassesAreRead(t *testing.T) {
	files, err := filepath.Glob("../../configmaps/cinder-*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	files = append(files, "../../deploy/examples/cinder-classic.yaml")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			class := exampleClass(t, file)
			task, err := read(sources(t, func(r *contract.Requests, _ fstest.MapFS) {
				r.Items[0].Class, r.Items[0].Properties = class.Name, class.Parameters
			}))
			if err != nil || task.Volume.Type != class.Parameters["type"] || task.Volume.Type == "" {
				t.Errorf("type %q, %v", task.Volume.Type, err)
			}
			if filepath.Base(file) == "cinder-classic.yaml" && (class.Name != "cinder-iscsi" || task.Volume.Type != "iscsi") {
				t.Errorf("the older example had class cinder-iscsi and type iscsi, this has %s and %s", class.Name, task.Volume.Type)
			}
		})
	}
}

// exampleConfig returns the ConfigMap in the file of a class.
func exampleConfig(t *testing.T, file string) corev1.ConfigMap {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, data, _ = bytes.Cut(data, []byte("\n---\n"))
	var config corev1.ConfigMap
	if err := yaml.UnmarshalStrict(data, &config); err != nil || config.Kind != "ConfigMap" {
		t.Fatalf("%s, %v", config.Kind, err)
	}
	return config
}

// exampleClass returns the class in such a file.
func exampleClass(t *testing.T, file string) storagev1.StorageClass {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data, _, _ = bytes.Cut(data, []byte("\n---\n"))
	var class storagev1.StorageClass
	if err := yaml.UnmarshalStrict(data, &class); err != nil || class.Kind != "StorageClass" {
		t.Fatalf("%s, %v", class.Kind, err)
	}
	return class
}

// The CSIDriver objects of both drivers say attachRequired, so without a csi-attacher no pod
// starts.
func TestThePageAsksForTheAttacherOfEachCSIDriver(t *testing.T) {
	page, err := os.ReadFile("../../docs/cinder.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, heading := range []string{"\n### Ceph (rbd)\n", "\n### NVMe-oF\n"} {
		_, section, found := strings.Cut(string(page), heading)
		section, _, _ = strings.Cut(section, "\n### ")
		if !found || !strings.Contains(section, "csi-attacher") || !strings.Contains(section, "attachRequired: true") {
			t.Errorf("the section %q does not say that a csi-attacher must run", strings.TrimSpace(heading))
		}
	}
	for _, file := range []string{"configmaps/cinder-rbd", "configmaps/cinder-nvmeof"} {
		if data, err := os.ReadFile("../../" + file + ".yaml"); err != nil || !bytes.Contains(data, []byte("csi-attacher must run")) {
			t.Errorf("%s.yaml does not say that a csi-attacher must run, %v", file, err)
		}
	}
}

// The kubelet's scan for one volume makes devices of all that are exported to its node, and only
// the node that used a volume removes its own. A LUN that is given again leads to the old device
// then.
func TestThePageSaysWhatFibreChannelLeavesOnNodes(t *testing.T) {
	page, err := os.ReadFile("../../docs/cinder.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n### Fibre Channel\n")
	section, _, _ = strings.Cut(section, "\n### ")
	section = strings.Join(strings.Fields(section), " ")
	for _, said := range []string{
		"Only the node that used a volume removes its device", "still have the old device under that LUN", "rescan-scsi-bus.sh -r", "find_multipaths yes",
	} {
		if !strings.Contains(section, said) {
			t.Errorf("the section on Fibre Channel does not say %q", said)
		}
	}
}

// A batch writes for several claims. Without the permission for their class all but one are served
// alone.
func TestEveryShippedConfigServesBatchesAndMay(t *testing.T) {
	role, err := os.ReadFile("../../deploy/base/cinder-rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../configmaps/cinder-*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d configs, %v", len(files), err)
	}
	for _, file := range files {
		config := exampleConfig(t, file)
		if config.Data["batch-size"] != "32" {
			t.Errorf("%s: batch-size %q", file, config.Data["batch-size"])
		}
		_, names, _ := strings.Cut(string(role), "resourceNames: [")
		names, _, _ = strings.Cut(names, "]")
		if class := config.Labels[contract.LabelStorageClass]; !slices.Contains(strings.Split(names, ", "), class) {
			t.Errorf("the ClusterRole flex-cinder-batch has %q, and not %s", names, class)
		}
	}
}

// After a growth csi-driver-nvmf would fail to mount the volume.
func TestVolumesOverNVMeAreNotOfferedGrowth(t *testing.T) {
	const file = "../../configmaps/cinder-nvmeof.yaml"
	if config := exampleConfig(t, file); config.Data["verbs"] != "provision,delete,list" {
		t.Errorf("the config serves %q", config.Data["verbs"])
	}
	if class := exampleClass(t, file); class.AllowVolumeExpansion != nil {
		t.Errorf("the class says allowVolumeExpansion: %t", *class.AllowVolumeExpansion)
	}
}

// A property that the page does not name would be found by reading the code only.
func TestThePageListsEveryProperty(t *testing.T) {
	page, err := os.ReadFile("../../docs/cinder-reference.md")
	if err != nil {
		t.Fatal(err)
	}
	_, err = with(t, map[string]string{"no-such-property": ""}, nil)
	_, list, found := strings.Cut(fmt.Sprint(err), "this image supports ")
	if !found {
		t.Fatalf("no list in %v", err)
	}
	for name := range strings.SplitSeq(list, ", ") {
		if !bytes.Contains(page, []byte("`"+name+"`")) {
			t.Errorf("docs/cinder-reference.md does not name `%s`", name)
		}
	}
}
