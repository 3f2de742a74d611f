//go:build e2e && long

package e2e

import (
	"cmp"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// recipe is a ConfigMap of configmaps, and the promises that its image keeps as kubectl flex conform finds them.
type recipe struct {
	config string
	// class is one of several that the config serves, and size that of its volumes, if it is not 64Mi.
	class, size string
	// onDirectories is set if the volumes are directories of the nodes' own file systems.
	onDirectories bool
	setUp         func(*world)
	// provoke says how the image is made to refuse a claim.
	provoke string
	// notClaimed and notProvoked are the promises with these verdicts, and skipped those that the lab cannot test, each with the reason. All
	// others must be kept.
	notClaimed, notProvoked string
	skipped                 []string
	// notServed is why no image of the lab serves the ConfigMap.
	notServed string
}

const (
	// byNode are what directories do not claim: nothing lists them, and they have no Secret, growth, batch or clone.
	byNode = "list secret expand expand-killed batch clone quiet"
	// inBatches are what directories do not claim that are made in batches.
	inBatches = "list secret expand expand-killed clone quiet"
	many      = "refuses: {accessModes: [ReadWriteMany]}\n"
	block     = "refuses: {volumeMode: Block}\n"
	full      = "no-capacity: {size: 4Ei}\n"
	noBase    = "bad-config: {data: {base-dir: ''}}\n"
	noNFS     = "bad-config: {data: {nfs-server: ''}}\n"
	// ofCinder are a fault in a property, and a size that is above the quota of the lab.
	ofCinder = "bad-config: {data: {multipath: perhaps}}\nno-capacity: {size: 2Pi}\n"
)

// unmounted is skipped by recipes whose volumes no node of the lab can mount.
func unmounted(why string) []string { return []string{"mount=" + why} }

// uncompared is skipped by those of them whose clones would be compared.
func uncompared(why, test string) []string {
	return append(unmounted(why), "clone="+why+", so the data are compared by "+test)
}

const (
	kernelHasNoNFS = "the kernel of the lab has no NFS"
	cephHasNoCSI   = "the lab has no node plugin of ceph-csi"
	isPlayed       = "the storage is played"
)

// recipes are all ConfigMaps of configmaps, as a test without the lab finds.
var recipes = []recipe{
	{config: "proprietary", notServed: "its image is a vendor's own"},
	{config: "xfs", notServed: "the kernel of the lab has no quotas of XFS"},
	{config: "cinder-iscsi", size: "1Gi", provoke: ofCinder, notClaimed: "clone", notProvoked: "bad-credentials"},
	{
		config: "cinder-flexvolume", size: "1Gi", provoke: ofCinder, notClaimed: "expand expand-killed clone", notProvoked: "bad-credentials",
		setUp: func(w *world) { w.must(installFlexDriver(), "install the driver"); w.apply(flexClass) },
	},
	{
		config: "cinder-fc", size: "1Gi", provoke: ofCinder, notClaimed: "secret clone", notProvoked: "bad-credentials", skipped: unmounted("the lab has no Fibre Channel"),
		setUp: func(w *world) {
			w.apply("cinder-fc")
			w.configured("cinder-fc", map[string]string{"shared-lun": "true"})
		},
	},
	{
		config: "cinder-nvmeof", size: "1Gi", provoke: ofCinder, notClaimed: "secret expand expand-killed clone", notProvoked: "bad-credentials",
		skipped: unmounted("the kernel of the lab has no NVMe"), setUp: func(w *world) { w.apply("cinder-nvmeof") },
	},
	{
		config: "cinder-rbd", size: "1Gi", provoke: ofCinder, notProvoked: "bad-credentials",
		skipped: uncompared(cephHasNoCSI, "TestCephVolumeIsOpenedWithItsSecretsKeyAndClonedByReference"), setUp: func(w *world) { w.cephSecret("cinder-rbd"); w.apply("cinder-rbd") },
	},
	{
		config: "ceph-rbd", provoke: many + "bad-config: {data: {pool: none}}\nbad-credentials: {data: {files-from-secret: ceph-rbd-denied}}\n", notClaimed: "secret", notProvoked: "no-capacity",
		skipped: uncompared(cephHasNoCSI, "TestRecipeCephRBD"),
		setUp: func(w *world) {
			w.logsInToCeph()
			w.login("ceph-rbd-denied", map[string]string{"userID": "cinder", "userKey": "AQAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAAAA=="})
			w.apply("ceph-rbd")
			w.configured("ceph-rbd", map[string]string{"monitors": "10.250.0.1"})
		},
	},
	{
		config: "http", provoke: block + full + "bad-config: {data: {api: ''}}\nbad-credentials: {data: {files-from-secret: http-denied}}\n", notClaimed: "secret clone", skipped: unmounted(isPlayed),
		setUp: func(w *world) {
			w.login("http", map[string]string{"header": "Authorization: Bearer CANARY-login\n"}) // test/recipes/remote
			w.login("http-denied", map[string]string{"header": "Authorization: Bearer another\n"})
			w.apply("http")
			w.configured("http", map[string]string{"api": "http://" + boxAddress})
		},
	},
	{
		config: "iscsi-target", provoke: many + full + "bad-config: {data: {directory: /srv/none}}\nbad-credentials: {data: {files-from-secret: iscsi-target-denied}}\n",
		setUp: func(w *world) { w.overSSH("iscsi-target", map[string]string{"portal": boxAddress}) },
	},
	{
		config: "lvm", provoke: many + "bad-config: {data: {pool: none}}\nbad-credentials: {data: {files-from-secret: lvm-denied}}\n", notProvoked: "no-capacity",
		skipped: uncompared(isPlayed, "TestClones"), setUp: func(w *world) { w.overSSH("lvm", map[string]string{"portal": boxAddress, "pool": "pool"}) },
	},
	{
		config: "zfs", provoke: block + full + "bad-config: {data: {parent: ''}}\nbad-credentials: {data: {files-from-secret: zfs-denied}}\n", notClaimed: "secret clone",
		skipped: unmounted(isPlayed), setUp: func(w *world) { w.overSSH("zfs", map[string]string{"nfs-server": boxAddress}) },
	},
	{config: "btrfs", provoke: noBase + full, notClaimed: "secret batch quiet", notProvoked: "bad-credentials", setUp: func(w *world) { w.apply("btrfs") }},
	{
		config: "nfs-btrfs", provoke: "bad-config: {data: {quota: xfs}}\n" + full, notClaimed: "list secret batch clone quiet", notProvoked: "bad-credentials", skipped: unmounted(kernelHasNoNFS),
		setUp: func(w *world) {
			w.apply("nfs-btrfs")
			w.configured("nfs-btrfs", map[string]string{"node-selector": corev1.LabelHostname + "=node1"})
		},
	},
	{config: "loop", onDirectories: true, provoke: many + noBase + full, notClaimed: "secret batch clone quiet", notProvoked: "bad-credentials", setUp: (*world).attaches},
	{config: "nfs", onDirectories: true, provoke: block + noNFS, notClaimed: inBatches, notProvoked: "bad-credentials no-capacity", skipped: unmounted(kernelHasNoNFS)},
	{
		config: "nfs-tiers", class: "nfs-private", onDirectories: true, provoke: block + noNFS, notClaimed: inBatches, notProvoked: "bad-credentials no-capacity", skipped: unmounted(kernelHasNoNFS),
		setUp: func(w *world) { w.apply("nfs-tiers") },
	},
	{config: "node-directory", onDirectories: true, provoke: many + noBase, notClaimed: byNode, notProvoked: "bad-credentials no-capacity"},
	{
		config: "seeded-directory", onDirectories: true, provoke: block + noBase, notClaimed: byNode, notProvoked: "bad-credentials no-capacity",
		setUp: func(w *world) {
			w.apply("seeded-directory")
			w.configured("seeded-directory", map[string]string{"notify-url": w.serve(func(http.ResponseWriter, *http.Request) {})})
		},
	},
	{
		config: "file-server", onDirectories: true, provoke: block + noBase, notClaimed: inBatches, notProvoked: "bad-credentials no-capacity",
		skipped: unmounted(kernelHasNoNFS),
	},
	{
		config: "isolated", onDirectories: true, provoke: block + noNFS, notClaimed: byNode, notProvoked: "bad-credentials no-capacity",
		skipped: unmounted(kernelHasNoNFS), setUp: func(w *world) { w.apply("isolated") },
	},
}

// configured changes keys of a shipped ConfigMap, which is deployed, until the test has ended.
func (w *world) configured(name string, data map[string]string) {
	w.t.Helper()
	shipped, before := w.exampleConfig(name, name), map[string]any{}
	for key := range data {
		before[key] = nil
		if value, has := shipped.Data[key]; has {
			before[key] = value
		}
	}
	patch := func(data any) {
		text, err := json.Marshal(map[string]any{"data": data})
		w.must(err, "encode the keys")
		_, err = kube.CoreV1().ConfigMaps(shipped.Namespace).Patch(w.ctx(), name, types.MergePatchType, text, metav1.PatchOptions{})
		w.must(err, "change the ConfigMap "+name)
	}
	w.remove(func() { patch(before) })
	patch(data)
}

// overSSH serves a recipe by the box. With the Secret NAME-denied the box refuses its key.
func (w *world) overSSH(name string, data map[string]string) {
	w.t.Helper()
	w.logsInToBox(name, inBox("key"), inBox("known_hosts"))
	other := filepath.Join(w.t.TempDir(), "key")
	w.runsIn(".", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other)
	w.logsInToBox(name+"-denied", other, inBox("known_hosts"))
	w.apply(name)
	data["box"] = "root@" + boxAddress
	w.configured(name, data)
}

// keepsAll checks what kubectl flex conform finds of a recipe.
func (r recipe) keepsAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "conform")
	if r.setUp != nil {
		r.setUp(w)
	}
	args := []string{"--size=" + cmp.Or(r.size, "64Mi"), w.provoked(r.provoke)}
	var skipped []string
	for _, promise := range r.skipped {
		name, _, _ := strings.Cut(promise, "=")
		args, skipped = append(args, "--skip="+promise), append(skipped, name)
	}
	w.mustKeep(cmp.Or(r.class, r.config), map[string]string{
		"not claimed": r.notClaimed, "not provoked": r.notProvoked, "skipped": strings.Join(skipped, " "),
	}, args...)
}

// Not parallel to others: the nodes have another storage meanwhile.
func TestConformOfRecipesKeepsAll(t *testing.T) { //nolint:tparallel // only among themselves
	w := newWorld(t, "conform")
	for _, node := range nodes {
		w.hasBtrfs(node)
	}
	w.hasBox()
	for _, r := range recipes {
		if !r.onDirectories && r.notServed == "" {
			t.Run(r.config, r.keepsAll)
		}
	}
}

// Not parallel to others, either: they would put something else into the directory.
func TestConformOfRecipesOnDirectoriesKeepsAll(t *testing.T) { //nolint:tparallel // only among themselves
	w := newWorld(t, "conform")
	w.export("nfs-export")
	w.apply("nfs", "PersistentVolume")
	w.remove(func() { w.removeJobsThatMount("nfs-export") })
	for _, r := range recipes {
		if r.onDirectories {
			t.Run(r.config, r.keepsAll)
		}
	}
}
