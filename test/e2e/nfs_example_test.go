//go:build e2e

package e2e

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The bash provisioner of configmaps/nfs.yaml and nfs-tiers.yaml, over an export that is a
// directory of node1: no NFS server is there, so nothing mounts these volumes.
func TestNFSExamplesProvisionAndDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "nfs")
	export := w.export("nfs-export")
	w.apply("nfs", "PersistentVolume")
	w.apply("nfs-tiers")
	w.remove(func() { w.removeJobsThatMount("nfs-export") })

	t.Run("PV from its skeleton", func(t *testing.T) {
		t.Parallel()
		w.with(t).nfsClass(export)
	})
	t.Run("three classes of one image", func(t *testing.T) {
		t.Parallel()
		w.with(t).nfsTiers(export)
	})
}

// with is the same world for a subtest.
func (w *world) with(t *testing.T) *world {
	t.Helper()
	return &world{t: t, ns: w.ns}
}

func manyWriters(c *corev1.PersistentVolumeClaim) {
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
}

func (w *world) nfsClass(export string) {
	claim := w.claim("nfs", "data", manyWriters)
	pv := w.bound(claim)
	if pv.Spec.NFS == nil {
		w.t.Fatalf("the PV has no nfs source: %+v", pv.Spec.PersistentVolumeSource)
	}
	equal(w.t, "the server", pv.Spec.NFS.Server, "filer.example")
	equal(w.t, "the path", pv.Spec.NFS.Path, "/exports/kubernetes/volumes/"+pv.Name)
	equal(w.t, "its access mode", pv.Spec.AccessModes[0], corev1.ReadWriteMany)
	dir := filepath.Join(export, "volumes", pv.Name)
	if _, err := os.Stat(dir); err != nil {
		w.t.Errorf("there is no directory: %v", err)
	}
	w.deleteClaim(claim)
	w.vanished(claim)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		w.t.Errorf("the directory of a deleted claim: %v", err)
	}
}

func (w *world) nfsTiers(export string) {
	images := map[string]bool{}
	for class, want := range map[string]struct {
		directory string
		mode      fs.FileMode
		options   int
		policy    corev1.PersistentVolumeReclaimPolicy
	}{
		"nfs-shared":  {"shared", 0o777, 0, corev1.PersistentVolumeReclaimDelete},
		"nfs-private": {"private", 0o770, 2, corev1.PersistentVolumeReclaimDelete},
		"nfs-archive": {"archive/kubernetes", 0o755, 0, corev1.PersistentVolumeReclaimRetain},
	} {
		claim := w.claim(class, class, manyWriters)
		pv := w.bound(claim)
		equal(w.t, class+": the path", pv.Spec.NFS.Path, "/exports/kubernetes/"+want.directory+"/"+pv.Name)
		equal(w.t, class+": mount options", len(pv.Spec.MountOptions), want.options)
		equal(w.t, class+": the reclaim policy", pv.Spec.PersistentVolumeReclaimPolicy, want.policy)
		dir, err := os.Stat(filepath.Join(export, want.directory, pv.Name))
		w.must(err, "look at the directory")
		equal(w.t, class+": the directory's mode", dir.Mode().Perm(), want.mode)
		images[w.onlyJob(claim, "provision").Spec.Template.Spec.Containers[0].Image] = true
		w.deleteOnExport(claim, pv)
	}
	equal(w.t, "images that served three classes", len(images), 1)
}

// deleteOnExport deletes a claim; a volume that its class retains is removed by hand.
func (w *world) deleteOnExport(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
	w.t.Helper()
	w.deleteClaim(claim)
	if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		w.must(kube.CoreV1().PersistentVolumes().Delete(w.ctx(), pv.Name, metav1.DeleteOptions{}), "delete the PV")
	}
	w.vanished(claim)
}

// removeJobsThatMount deletes Jobs that mount a claim, and waits for their pods: as long as these
// exist, ended or not, the claim stays. A node that unmounts an NFS whose server was stopped waits for
// that server.
func (w *world) removeJobsThatMount(claim string) {
	w.t.Helper()
	mounts := func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	}
	jobs, err := kube.BatchV1().Jobs(ownNamespace).List(w.ctx(), all)
	w.must(err, "list the Jobs")
	for _, job := range jobs.Items {
		if slices.ContainsFunc(job.Spec.Template.Spec.Volumes, mounts) {
			err := kube.BatchV1().Jobs(ownNamespace).Delete(w.ctx(), job.Name,
				metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
			w.gone(err, "Job "+job.Name)
		}
	}
	w.eventually(toMount, "the end of the pods that mount "+claim, func(ctx context.Context) error {
		pods, err := kube.CoreV1().Pods(ownNamespace).List(ctx, all)
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if slices.ContainsFunc(pod.Spec.Volumes, mounts) {
				return errors.New("the pod " + pod.Name + " exists")
			}
		}
		return nil
	})
}

// export makes a directory of node1 what the claim of this name, in the namespace of configs, is
// bound to, and returns where it is on the host.
func (w *world) export(claim string) string {
	w.t.Helper()
	dir := filepath.Join(volumesOfNode1(), claim)
	w.must(os.MkdirAll(dir, 0o777), "make the export")
	w.must(os.Chmod(dir, 0o777), "open the export") // the provisioner is another user
	w.remove(func() { _ = os.RemoveAll(dir) })
	_, err := kube.CoreV1().PersistentVolumes().Create(w.ctx(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: claim},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Ti")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: ownNamespace, Name: claim},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/flex-volumes/" + claim}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"node1"}}},
			}}}},
		},
	}, metav1.CreateOptions{})
	w.must(err, "create the export's PV")
	w.remove(func() {
		w.gone(kube.CoreV1().PersistentVolumes().Delete(w.ctx(), claim, metav1.DeleteOptions{}), "the export's PV")
	})
	return dir
}

// volumesOfNode1 is node1's /var/lib/flex-volumes, seen from the host.
func volumesOfNode1() string { return filepath.Dir(directory("1", &corev1.PersistentVolumeClaim{})) }
