package remote

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// recipe is what these tests know of a recipe.
type recipe struct {
	name    string
	overSSH bool
	// onBox is that the box is real: boxes_test.go.
	onBox bool
	// files are those of the Secret.
	files []string
	// setUp makes the storage, and the properties of the config.
	setUp func(w *world)
	// volumes returns the sizes of the volumes that can be used, by the UIDs of their claims.
	volumes func(w *world) map[string]int64
	// left returns everything that is in the storage.
	left func(w *world) []string
	// source is the volume source of the first claim's PV; WORLD is the world's directory,
	// and VOLUME the appliance's name of the volume.
	source string
	// refused changes a request into one that is refused, and accepted into one that is not,
	// although other recipes refuse it.
	refused, accepted func(*contract.Request)
	// fill uses up the storage. It is nil for one that does not say that it is full.
	fill func(w *world)
}

func block(r *contract.Request) { r.VolumeMode = "Block" }
func many(r *contract.Request)  { r.AccessModes = []string{"ReadWriteMany"} }

// first is the UID of claim(1).
var first = claim(1).UID

func recipes() []recipe {
	all := []recipe{overHTTP(), iscsiTarget(), overLVM(), overZFS()}
	if os.Getenv(cephDirectory) != "" {
		all = append(all, overCeph())
	}
	return all
}

func overHTTP() recipe {
	return recipe{
		name: "http", files: []string{"header"}, refused: block, accepted: many,
		setUp: func(w *world) {
			w.appliance = newAppliance(w.t)
			w.properties = map[string]string{"api": w.appliance.server.URL, "answer-timeout": "1"}
		},
		volumes: func(w *world) map[string]int64 {
			found := map[string]int64{}
			for _, v := range w.appliance.volumes {
				found[fmt.Sprint(v.Metadata["uid"])] += v.Bytes
			}
			return found
		},
		left: func(w *world) []string {
			var all []string
			for _, v := range w.appliance.volumes {
				all = append(all, v.Name)
			}
			return all
		},
		source: `{"nfs":{"path":"/vol/VOLUME","server":"nas.example"}}`,
		fill:   func(w *world) { w.appliance.room = 1 },
	}
}

func iscsiSource(prefix, portal string) string {
	return strings.NewReplacer("PV", "pvc-"+first, "IQN", prefix, "PORTAL", portal).Replace(
		`{"iscsi":{"chapAuthSession":true,"fsType":"ext4","iqn":"IQN:PV","lun":1,"secretRef":{"name":"PV","namespace":"flex-provisioner"},"targetPortal":"PORTAL"}}`)
}

func iscsiTarget() recipe {
	return recipe{
		name: "iscsi-target", overSSH: true, files: []string{"key", "known_hosts", "chap"}, refused: many, accepted: block,
		setUp: func(w *world) {
			maps.Copy(w.properties, map[string]string{"directory": w.dir + "/box/volumes", "iqn": "iqn.2026-01.example.box", "portal": "192.0.2.10"})
		},
		volumes: func(w *world) map[string]int64 {
			found := map[string]int64{}
			state(w.dir, "tgt", func(all *tgtTargets) {
				for iqn, target := range *all {
					found[iqn[strings.Index(iqn, "pvc-")+4:]] = target.Size
				}
			})
			return found
		},
		left: func(w *world) []string {
			all := glob(w, "box/volumes/pvc-*", "box/volumes/pvc-*/*", "box/conf.d/*")
			state(w.dir, "tgt", func(targets *tgtTargets) {
				for iqn := range *targets {
					all = append(all, iqn)
				}
			})
			state(w.dir, "tgt-logins", func(logins *tgtLogins) {
				for user := range *logins {
					all = append(all, "the login "+user)
				}
			})
			return all
		},
		source: iscsiSource("iqn.2026-01.example.box", "192.0.2.10"),
		fill:   func(w *world) { w.write("box/no-room", "") },
	}
}

func overLVM() recipe {
	return recipe{
		name: "lvm", overSSH: true, files: []string{"key", "known_hosts", "chap"}, refused: many, accepted: block,
		setUp: func(w *world) {
			maps.Copy(w.properties, map[string]string{"volume-group": "vg", "pool": "pool", "iqn": "iqn.2026-01.example.lvm", "portal": "192.0.2.10"})
			state(w.dir, "lvm", func(group *lvm) {
				*group = lvm{Used: "12.34", Volumes: map[string]logicalVolume{"by-hand": {Size: extent}}}
			})
		},
		volumes: func(w *world) map[string]int64 {
			found := map[string]int64{}
			state(w.dir, "lvm", func(group *lvm) {
				for name, v := range group.Volumes {
					if _, err := os.Stat(w.dir + "/box/lio/iscsi/iqn.2026-01.example.lvm:" + name + "/tpgt_1/lun/lun_1"); err == nil {
						found[strings.TrimPrefix(name, "pvc-")] = v.Size
					}
				}
			})
			return found
		},
		left: func(w *world) []string {
			all := glob(w, "box/lio/iscsi/*", "box/lio/core/*/*")
			state(w.dir, "lvm", func(group *lvm) {
				for name := range group.Volumes {
					if name != "by-hand" {
						all = append(all, name)
					}
				}
			})
			return all
		},
		source: iscsiSource("iqn.2026-01.example.lvm", "192.0.2.10"),
		fill:   func(w *world) { state(w.dir, "lvm", func(group *lvm) { group.Used = "90.01" }) },
	}
}

func overZFS() recipe {
	return recipe{
		name: "zfs", overSSH: true, files: []string{"key", "known_hosts"}, refused: block, accepted: many,
		setUp: func(w *world) {
			maps.Copy(w.properties, map[string]string{"parent": "tank/flex", "nfs-server": "192.0.2.10"})
			state(w.dir, "zfs", func(pool *zpool) {
				*pool = zpool{Available: 100 * mebi, ShareNFS: "rw=@192.0.2.0/24", Children: map[string]map[string]string{"tank/flex/by-hand": {"refquota": "7", "flex:note": "-"}}}
			})
		},
		volumes: func(w *world) map[string]int64 {
			found := map[string]int64{}
			state(w.dir, "zfs", func(pool *zpool) {
				for name, p := range pool.Children {
					if uid, is := strings.CutPrefix(name, "tank/flex/pvc-"); is {
						var size int64
						_, _ = fmt.Sscan(p["refquota"], &size)
						found[uid] = size
					}
				}
			})
			return found
		},
		left: func(w *world) []string {
			var all []string
			state(w.dir, "zfs", func(pool *zpool) {
				for name := range pool.Children {
					if !strings.HasSuffix(name, "by-hand") {
						all = append(all, name)
					}
				}
			})
			return all
		},
		source: `{"nfs":{"path":"WORLD/box/tank/flex/pvc-` + first + `","server":"192.0.2.10"}}`,
		fill:   func(w *world) { state(w.dir, "zfs", func(pool *zpool) { pool.Available = 1 }) },
	}
}

func glob(w *world, patterns ...string) []string {
	var all []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(w.dir, pattern))
		must(w.t, err)
		all = append(all, found...)
	}
	return all
}

// subtest is a test of one recipe.
type subtest struct {
	t      *testing.T
	recipe recipe
}

// forEach runs a test for each recipe.
func forEach(t *testing.T, test func(subtest)) {
	t.Helper()
	t.Parallel()
	for _, r := range recipes() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			test(subtest{t, r})
		})
	}
}

// mustHave fails the test if the storage has other volumes than one of each of these claims, of
// at least this size.
func (w *world) mustHave(size int64, claims ...contract.Request) {
	w.t.Helper()
	found := w.recipe.volumes(w)
	for _, c := range claims {
		if n := found[c.UID]; n < size || n >= size+extent {
			w.t.Fatalf("the volume of the claim %s has %d bytes, want %d: %v", c.Name, n, size, found)
		}
	}
	if len(found) != len(claims) {
		w.t.Fatalf("there are the volumes %v", found)
	}
}

// mustHaveNothing fails the test if something of a claim is left.
func (w *world) mustHaveNothing() {
	w.t.Helper()
	left := w.recipe.left(w)
	for _, secret := range w.api.All("secrets") {
		left = append(left, fmt.Sprint(secret.At("metadata")))
	}
	if len(left) > 0 {
		w.t.Fatalf("there is still %q", left)
	}
}
