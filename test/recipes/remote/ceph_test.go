package remote

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// cephDirectory names a directory with the files ceph.conf and ceph.client.admin.keyring of a real
// Ceph, which these tests make pools in: rbd is not played. Without it the recipe is not tested.
// PART=recipes of hack/e2e-long.sh sets it.
const cephDirectory = "RECIPES_CEPH"

var pools atomic.Int32

// admin runs a program of Ceph as its administrator, and returns what it prints.
func admin(t *testing.T, words ...string) string {
	t.Helper()
	dir := os.Getenv(cephDirectory)
	run := exec.CommandContext(t.Context(), words[0], append([]string{"--conf", dir + "/ceph.conf", "--keyring", dir + "/client.admin.keyring"}, words[1:]...)...)
	var log strings.Builder
	run.Stderr = &log
	out, err := run.Output()
	if err != nil {
		t.Fatalf("%q: %v: %s", words, err, log.String())
	}
	return string(out)
}

// cephImage is an image, or a snapshot of one.
type cephImage struct {
	Image, Snapshot string
	Size            int64
}

func overCeph() recipe {
	pool := func(w *world) string { return w.properties["pool"] }
	images := func(w *world) (all []cephImage) {
		must(w.t, json.Unmarshal([]byte(admin(w.t, "rbd", "ls", "--long", "--format", "json", pool(w))), &all))
		return all
	}
	return recipe{
		name: "ceph-rbd", files: []string{"userID", "userKey"}, refused: many, accepted: func(r *contract.Request) { block(r); many(r) },
		setUp: func(w *world) {
			name := fmt.Sprintf("recipe-%d", pools.Add(1))
			admin(w.t, "ceph", "osd", "pool", "create", name, "1")
			w.t.Cleanup(func() {
				run := exec.Command("ceph", "--conf", os.Getenv(cephDirectory)+"/ceph.conf", "--keyring", os.Getenv(cephDirectory)+"/client.admin.keyring",
					"osd", "pool", "rm", name, name, "--yes-i-really-really-mean-it")
				if out, err := run.CombinedOutput(); err != nil {
					w.t.Errorf("remove the pool: %v: %s", err, out)
				}
			})
			admin(w.t, "rbd", "pool", "init", name)
			user := strings.TrimSpace(admin(w.t, "ceph", "auth", "get-or-create-key", "client."+name, "mon", "profile rbd", "osd", "profile rbd pool="+name, "mgr", "profile rbd pool="+name))
			w.write("etc/secret/userID", name)
			w.write("etc/secret/userKey", user)
			w.canaries = append(w.canaries, user)
			var monitors string
			for line := range strings.Lines(admin(w.t, "ceph", "mon", "dump")) {
				if _, found, is := strings.Cut(line, "v1:"); is && monitors == "" {
					monitors, _, _ = strings.Cut(found, "/")
				}
			}
			w.properties = map[string]string{"monitors": monitors, "pool": name, "cluster-id": "cluster", "node-secret": "ceph-rbd"}
		},
		volumes: func(w *world) map[string]int64 {
			found := map[string]int64{}
			for _, image := range images(w) {
				if image.Snapshot == "" {
					found[strings.TrimPrefix(image.Image, "pvc-")] = image.Size
				}
			}
			return found
		},
		left: func(w *world) (all []string) {
			for _, image := range images(w) {
				all = append(all, image.Image+"@"+image.Snapshot)
			}
			return all
		},
		source: `{"csi":{"driver":"rbd.csi.ceph.com","fsType":"ext4","nodeStageSecretRef":{"name":"ceph-rbd","namespace":"flex-provisioner"},` +
			`"volumeAttributes":{"clusterID":"cluster","imageFeatures":"layering","pool":"POOL","staticVolume":"true"},"volumeHandle":"pvc-` + first + `"}}`,
	}
}
