//go:build recipes

package remote

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// An audit deletes a volume by what the list says of it.
func TestListHasWhatAnAuditNeeds(t *testing.T) {
	forEach(t, func(of subtest) {
		t, r := of.t, of.recipe
		w := newWorld(t, r)
		one, two := claim(1), claim(2)
		w.mustEnd(w.run(contract.List, claim(9)), 0, `{"lines":0}`)
		w.mustEnd(w.run(contract.Provision, one), 0, "")
		w.mustEnd(w.run(contract.Provision, two), 0, "")
		two.Size = 6 * mebi
		w.mustEnd(w.run(contract.Expand, two), 0, "")
		e := w.run(contract.List, claim(9))
		w.mustEnd(e, 0, `{"lines":2}`)
		sizes := map[string]int64{}
		var listed contract.Listed
		for line := range strings.Lines(e.out) {
			must(t, json.Unmarshal([]byte(line), &listed))
			if listed.Namespace != "app" || !strings.HasPrefix(listed.Name, "data-") || listed.Class != "gold" || listed.ClusterUID != "0f6b2f6e" || listed.Volume == "" {
				t.Errorf("the list has %s", line)
			}
			sizes[listed.UID] = listed.Size
		}
		if len(sizes) != 2 || sizes[one.UID] < mebi || sizes[one.UID] > extent || sizes[two.UID] < 6*mebi {
			t.Errorf("the list has the sizes %v", sizes)
		}
		for _, c := range []contract.Request{one, two} {
			if c.UID == listed.UID {
				c.ListedVolume = listed.Volume
				w.mustEnd(w.run(contract.Delete, c), 0, "")
			}
		}
		if left := w.recipe.volumes(w); len(left) != 1 || left[listed.UID] != 0 {
			t.Errorf("after the delete of one there are %v", left)
		}
	})
}

// A run may be killed at any moment, with the answer to its last call lost. The next one finishes
// its work, or undoes it.
func TestKilledAfterEachCall(t *testing.T) {
	forEach(t, func(of subtest) {
		t, r := of.t, of.recipe
		for _, next := range []contract.Verb{contract.Provision, contract.Delete} {
			t.Run(string(next), func(t *testing.T) {
				t.Parallel()
				w, c := newWorld(t, r), claim(1)
				unbroken := w.mustCall(contract.Provision, c)
				w.mustEnd(w.run(contract.Delete, c), 0, "")
				w.api.Forget()
				for i := 1; i <= unbroken; i++ {
					if e := w.killed(len(w.calls())+i, contract.Provision, c); e.code == 0 && i < unbroken {
						t.Fatalf("killed after call %d, the run ends with 0", i)
					}
					w.mustEnd(w.run(next, c), 0, "")
					if next == contract.Provision {
						w.mustHave(mebi, c)
						w.mustHavePV(c)
					}
					w.mustEnd(w.run(contract.Delete, c), 0, "")
					w.api.Forget()
					w.mustHaveNothing()
				}
			})
		}
		for _, verb := range []contract.Verb{contract.Expand, contract.Delete} {
			t.Run(string(verb)+" again", func(t *testing.T) {
				t.Parallel()
				w, c := newWorld(t, r), claim(1)
				for i, unbroken := 1, 1; i <= unbroken; i++ {
					c.Size = mebi
					w.mustEnd(w.run(contract.Provision, c), 0, "")
					c.Size = 6 * mebi
					if i == 1 {
						unbroken = w.mustCall(verb, c)
						w.mustEnd(w.run(contract.Delete, c), 0, "")
						w.mustEnd(w.run(contract.Provision, claim(1)), 0, "")
					}
					w.killed(len(w.calls())+i, verb, c)
					w.mustEnd(w.run(verb, c), 0, "")
					if verb == contract.Expand {
						w.mustHave(6*mebi, c)
						w.mustEnd(w.run(contract.Delete, c), 0, "")
					}
					w.mustHaveNothing()
				}
			})
		}
	})
}

// mustCall runs a verb to its end, and returns how many calls that needs.
func (w *world) mustCall(verb contract.Verb, c contract.Request) int {
	w.t.Helper()
	before := len(w.calls())
	w.mustEnd(w.run(verb, c), 0, "")
	n := len(w.calls()) - before
	if n < 1 {
		w.t.Fatalf("the calls are %v", w.calls()[before:])
	}
	return n
}

func TestTwoRunsAtOnceMakeOneVolume(t *testing.T) {
	forEach(t, func(of subtest) {
		t, r := of.t, of.recipe
		w, c := newWorld(t, r), claim(1)
		for range 3 {
			one, other := w.start(0, contract.Provision, c), w.start(0, contract.Provision, c)
			if first, second := one(), other(); first.code != 0 && second.code != 0 {
				t.Errorf("both have failed:\n%s\n%s", first.out, second.out)
			}
			w.mustEnd(w.run(contract.Provision, c), 0, "")
			w.mustHave(mebi, c)
			w.mustEnd(w.run(contract.Delete, c), 0, "")
			w.mustHaveNothing()
		}
	})
}

// A request of a batch that is refused does not concern the others.
func TestBatchServesEachClaim(t *testing.T) {
	forEach(t, func(of subtest) {
		t, r := of.t, of.recipe
		w := newWorld(t, r)
		claims := []contract.Request{claim(1), claim(2, r.refused), claim(3), claim(4)}
		good := []contract.Request{claims[0], claims[2], claims[3]}
		w.mustEnd(w.run(contract.Provision, claims...), contract.ExitBadRequest, "claim: ")
		w.mustHave(mebi, good...)
		if pvs := w.api.All("persistentvolumes"); len(pvs) != 3 {
			t.Errorf("the PVs are %v", pvs)
		}
		for i := range claims {
			claims[i].Size = 6 * mebi
		}
		good = []contract.Request{claims[0], claims[2], claims[3]}
		w.mustEnd(w.run(contract.Expand, good...), 0, "")
		w.mustHave(6*mebi, good...)
		w.mustEnd(w.run(contract.Delete, claims...), 0, "")
		w.mustHaveNothing()
	})
}

func TestFullStorageIsNoCapacity(t *testing.T) {
	forEach(t, func(of subtest) {
		t, r := of.t, of.recipe
		if r.fill == nil {
			return
		}
		w, c := newWorld(t, r), claim(1)
		w.mustEnd(w.run(contract.Provision, c), 0, "")
		w.recipe.fill(w)
		if r.name != "lvm" { // where only the pool can be full
			c.Size = 6 * mebi
			w.mustEnd(w.run(contract.Expand, c), contract.ExitCapacity, "claim: the storage has no room for 6291456 bytes")
			w.mustHave(mebi, c)
		}
		w.mustEnd(w.run(contract.Provision, claim(2)), contract.ExitCapacity, "claim: the storage has no room for 1048576 bytes")
		w.mustHave(mebi, c)
		w.mustEnd(w.run(contract.Delete, c), 0, "")
		w.mustEnd(w.run(contract.Delete, claim(2)), 0, "") // of what the refused run may have left
		w.mustHaveNothing()
	})
}

func TestAcceptedRequestHasItsVolume(t *testing.T) {
	forEach(t, func(of subtest) {
		w, c := newWorld(of.t, of.recipe), claim(1, of.recipe.accepted)
		w.mustEnd(w.run(contract.Provision, c), 0, "")
		w.mustHave(mebi, c)
		w.mustEnd(w.run(contract.Delete, c), 0, "")
		w.mustHaveNothing()
	})
}

func TestRefusedRequestMakesNothing(t *testing.T) {
	forEach(t, func(of subtest) {
		t, r := of.t, of.recipe
		w := newWorld(t, r)
		w.mustEnd(w.run(contract.Provision, claim(1, r.refused)), contract.ExitBadRequest, "claim: ")
		w.mustHaveNothing()
	})
}

// The texts of a claim are its owner's. What is asked of the storage has them only where they are
// data.
func TestNoTextOfAClaimIsRun(t *testing.T) {
	forEach(t, func(of subtest) {
		t, r := of.t, of.recipe
		w := newWorld(t, r)
		hostile := "x'\"; touch " + w.dir + "/pwned; $(touch " + w.dir + "/pwned) `touch " + w.dir + "/pwned`\ny &volumes"
		c := claim(1, func(c *contract.Request) {
			c.Name, c.Namespace, c.Username, c.Group = hostile, hostile, hostile, hostile
			c.Labels, c.Annotations = map[string]string{hostile: hostile}, map[string]string{hostile: hostile}
		})
		w.mustEnd(w.run(contract.Provision, c), 0, "")
		e := w.run(contract.List, claim(9))
		w.mustEnd(e, 0, `{"lines":1}`)
		var listed contract.Listed
		must(t, json.Unmarshal([]byte(e.out), &listed))
		if listed.Name != hostile || listed.Namespace != hostile {
			t.Errorf("the list has %+v", listed)
		}
		w.mustEnd(w.run(contract.Delete, c), 0, "")
		w.mustHaveNothing()
		if _, err := os.Stat(w.dir + "/pwned"); err == nil {
			t.Error("a text of the claim was run")
		}
	})
}

// The limit of a pod's /tmp ends the pod when the kubelet sees it, and until then a hostile storage
// once filled the disk of the node by 16 GiB in each run.
func TestAnswerWithoutAnEndDoesNotFillTheNode(t *testing.T) {
	t.Parallel()
	for _, r := range []recipe{overHTTP(), iscsiTarget(), overLVM(), overZFS()} {
		for _, answer := range []string{"endless", "endless messages"} {
			w := newWorld(t, r)
			if r.overSSH {
				w.write("box/ssh", answer)
			} else {
				w.appliance.faults = []string{"endless"}
			}
			for _, verb := range []contract.Verb{contract.List, contract.Provision, contract.Expand, contract.Delete} {
				switch e := w.run(verb, claim(1)); {
				case len(e.out) > mebi: // the node writes the log, and no limit of the pod's files holds for it
					t.Errorf("%s: the log of %s has %d bytes", r.name, verb, len(e.out))
				case e.code == 0:
					t.Errorf("%s: %s ends with success:\n%s", r.name, verb, e.out)
				}
			}
			must(t, filepath.Walk(w.dir+"/tmp", func(path string, info os.FileInfo, err error) error {
				if err == nil && info.Size() > 32*mebi {
					t.Errorf("%s: %s has %d bytes", r.name, path, info.Size())
				}
				return err
			}))
		}
	}
}

// The kubelet of a node makes arguments and paths of what the PV has from the storage.
func TestNoPathOfAHostileStorageReachesThePV(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/vol/../a", "/vol\na", "/vol\x1b[31m", "/vol\ta", ".."} {
		for _, r := range []recipe{overHTTP(), overZFS()} {
			var believed []edition
			if r.name == "zfs" {
				believed = []edition{{`grep -q "^$1\([[:space:]]\|\$\)"`, "true"}}
			}
			w, c := newWorld(t, r, believed...), claim(1)
			w.mustEnd(w.run(contract.Provision, c), 0, "")
			w.api.Forget()
			if r.name == "http" {
				w.appliance.volumes[0].Path = path
			} else {
				dir := w.dir + "/box/tank/flex/" + c.PVName
				state(w.dir, "zfs", func(pool *zpool) { pool.Claimed = dir + "/" + path })
				must(t, os.MkdirAll(dir+"/"+path, 0o755)) // the script changes its mode
			}
			w.mustEnd(w.run(contract.Provision, c), contract.ExitTempFail, "has control characters, or leads to a directory above")
			if pvs := w.api.All("persistentvolumes"); len(pvs) > 0 {
				t.Errorf("%s: with %q there is the PV %v", r.name, path, pvs)
			}
		}
	}
}

// The search for secrets finds one that a script shows.
func TestASecretThatIsShownIsFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		recipe recipe
		change edition
	}{
		"in an argument":       {overHTTP(), edition{`--header "@$secret/header"`, `--header "$(cat $secret/header)"`}},
		"in the output":        {overHTTP(), edition{"  judge\n", "  cat $secret/header\n  judge\n"}},
		"the token of the pod": {overHTTP(), edition{"  judge\n", "  cat /etc/flex/../account/token\n  judge\n"}},
		"a password":           {iscsiTarget(), edition{`  iscsi_pv "$iqn"`, `  iscsi_pv "$iqn"; cat "$work/password"`}},
		"a word of the box":    {iscsiTarget(), edition{`"$FLEX_SIZE" "$from" <`, `"$FLEX_SIZE" "$from" "$(cat "$work/password")" <`}},
		"an argument on a box": {overLVM(), edition{"  cli <<END\n", "  rm -f \"$password\"\n  cli <<END\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.recipe, test.change)
			w.leaky = true
			w.mustEnd(w.run(contract.Provision, claim(1)), 0, "")
			if found := w.leaks(); len(found) == 0 {
				t.Error("nothing is found")
			}
		})
	}
}
