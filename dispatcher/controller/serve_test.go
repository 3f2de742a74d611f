package controller_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/contract"
)

// bare sets up everything but a config.
func (w *world) bare() {
	w.images[gold] = image{does: works}
	w.class("gold", corev1.PersistentVolumeReclaimDelete)
	w.account("writer", "true")
}

const onData = "PersistentVolumeClaim/data"

// mustServeNobody checks that no Job was made.
func mustServeNobody(t *testing.T, w *world) {
	t.Helper()
	if len(w.made("")) != 0 {
		t.Errorf("%d Jobs before anything could be served", len(w.made("")))
	}
}

func TestAClaimWithoutAConfigWaitsForItAndSaysSo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bare()
		w.start()
		w.claim("data")
		w.run(time.Hour)
		mustServeNobody(t, w)
		mustSay(t, w, onData, "WaitingForConfig", "class gold", "namespace "+home, "type=provisioner-config", "storage-class=gold")
		w.config("gold", "gold")
		w.until("the claim is bound", 5*time.Second, w.bound("data"))
	})
}

func TestTwoConfigsForOneClassAreBothNamedAndNeitherServes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bare()
		w.config("first", "gold")
		second := w.config("second", "gold")
		w.start()
		w.claim("data")
		w.run(time.Hour)
		mustServeNobody(t, w)
		mustSay(t, w, onData, "AmbiguousConfig", "first and second", "class gold")
		drop(w, admin, second)
		w.until("the claim is bound", 5*time.Second, w.bound("data"))
	})
}

func TestAnInvalidConfigIsToldWithAllItsFaultsWhereTheyAre(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bare()
		w.config("gold", "gold", "timeout", "soon", "nodeSelector", "a=b")
		w.start()
		w.claim("data")
		w.run(time.Hour)
		mustServeNobody(t, w)
		for _, about := range []string{onData, "ConfigMap/gold"} {
			mustSay(t, w, about, "InvalidConfig", "data[timeout]", "data[nodeSelector]", "did you mean node-selector")
		}
		edit(w, admin, get[*corev1.ConfigMap](w, home, "gold"), func(cm *corev1.ConfigMap) {
			delete(cm.Data, "timeout")
			delete(cm.Data, "nodeSelector")
		})
		w.until("the claim is bound", 5*time.Second, w.bound("data"))
	})
}

func TestATemplateThatReachesForTheNodeIsRefused(t *testing.T) {
	const template = "spec: {hostNetwork: true}"
	inWorld(t, func(t *testing.T, w *world) {
		w.bare()
		w.config("gold", "gold", "pod-template", template)
		w.start()
		w.claim("data")
		w.run(time.Minute)
		mustServeNobody(t, w)
		mustSay(t, w, "ConfigMap/gold", "InvalidConfig", "pod-template", "host namespaces", "--allow")
	})
}

func TestAServiceAccountMustExistAndCarryTheLabel(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.images[gold] = image{does: works}
		w.class("gold", corev1.PersistentVolumeReclaimDelete)
		w.config("gold", "gold")
		w.start()
		w.claim("data")
		w.run(time.Minute)
		mustSay(t, w, onData, "ServiceAccountRefused", "writer", "flex-provisioner.io/provisioner=true")
		w.account("writer", "false")
		w.run(time.Minute)
		mustServeNobody(t, w)
		edit(w, admin, get[*corev1.ServiceAccount](w, home, "writer"), func(a *corev1.ServiceAccount) { a.Labels[contract.LabelProvisioner] = "true" })
		w.until("the claim is bound", 5*time.Second, w.bound("data"))
	})
}

func TestConfigsElsewhereServeNobodyUnlessTheClassNamesTheirNamespace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bare()
		w.options.Namespaces = []string{home, "team"}
		place := func(obj object, ns string) object {
			obj.SetNamespace(ns)
			obj.SetUID("")
			obj.SetResourceVersion("")
			return obj
		}
		cm := w.config("gold", "gold")
		drop(w, admin, cm)
		add(w, admin, place(cm, "team").(*corev1.ConfigMap))
		add(w, admin, place(cm.DeepCopy(), "kube-public").(*corev1.ConfigMap))
		add(w, admin, place(get[*corev1.ServiceAccount](w, home, "writer"), "team").(*corev1.ServiceAccount))
		w.start()
		w.claim("data")
		w.run(time.Minute)
		mustServeNobody(t, w)
		mustSay(t, w, onData, "WaitingForConfig", "namespace "+home)
		// A class cannot be changed, but it can be made anew.
		drop(w, admin, get[*storagev1.StorageClass](w, "", "gold"))
		w.class("gold", corev1.PersistentVolumeReclaimDelete, func(c *storagev1.StorageClass) {
			c.Parameters = map[string]string{contract.ParamConfigNamespace: "team"}
		})
		w.until("the claim is bound", 5*time.Second, w.bound("data"))
		if job := w.made("")[0]; job.namespace != "team" {
			t.Errorf("its Job ran in %s", job.namespace)
		}
	})
}

func TestAClassThatNamesANamespaceWhichIsNotServedIsToldSo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.account("writer", "true")
		w.class("gold", corev1.PersistentVolumeReclaimDelete, func(c *storagev1.StorageClass) {
			c.Parameters = map[string]string{contract.ParamConfigNamespace: "team"}
		})
		w.start()
		w.claim("data")
		w.run(time.Minute)
		mustServeNobody(t, w)
		mustSay(t, w, onData, "NamespaceNotServed", "team", "--config-namespaces")
	})
}

func TestWaitForFirstConsumerWaitsForTheSchedulersNode(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.images[gold] = image{does: works}
		w.class("gold", corev1.PersistentVolumeReclaimDelete, firstConsumer)
		w.account("writer", "true")
		w.config("gold", "gold", "run-on", "selected-node")
		add(w, admin, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{corev1.LabelTopologyZone: "west"}}})
		w.start()
		claim := w.claim("data")
		w.run(time.Hour)
		mustServeNobody(t, w)
		edit(w, "kube-scheduler", claim, func(c *corev1.PersistentVolumeClaim) { annotate(c, annNode, "node-1") })
		w.until("the claim is bound", 5*time.Second, w.bound("data"))
		job := w.made("")[0].now.(*batchv1.Job)
		if job.Annotations[contract.AnnNode] != "node-1" {
			t.Errorf("the Job is for the node %q", job.Annotations[contract.AnnNode])
		}
		if r := w.runs[0].request; r.SelectedNode != "node-1" || r.SelectedZone != "west" {
			t.Errorf("the image sees the node %q in the zone %q", r.SelectedNode, r.SelectedZone)
		}
		fields := job.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields
		if len(fields) != 1 || fields[0].Values[0] != "node-1" {
			t.Errorf("its pod goes to %v", fields)
		}
	})
}

// The PV controller's annotation stays when the scheduler takes its node back.
func TestAClaimWhoseNodeWasTakenBackWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.images[gold] = image{does: works}
		w.class("gold", corev1.PersistentVolumeReclaimDelete, firstConsumer)
		w.account("writer", "true")
		w.config("gold", "gold")
		w.start()
		w.claim("data", func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{annAsked: contract.ProvisionerName}
		})
		w.run(time.Hour)
		mustServeNobody(t, w)
	})
}

func TestAnotherNodeIsAnotherRunAfterAnUndo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.images[gold] = image{does: script(halfway(73))}
		w.class("gold", corev1.PersistentVolumeReclaimDelete, firstConsumer)
		w.account("writer", "true")
		w.config("gold", "gold")
		w.start()
		claim := w.claim("data", func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{annNode: "node-1"} })
		w.until("the first run failed", time.Minute, func() bool { return len(w.runs) == 1 })
		w.run(time.Second)
		edit(w, "kube-scheduler", claim, func(c *corev1.PersistentVolumeClaim) { annotate(c, annNode, "node-2") })
		w.until("the claim is bound", 10*time.Second, w.bound("data"))
		if len(w.runs) != 3 || w.runs[1].verb != contract.Delete || w.runs[1].request.SelectedNode != "node-1" || w.runs[2].request.SelectedNode != "node-2" {
			t.Errorf("ran %v", w.verbs())
		}
	})
}

// verbs that ran, in order.
func (w *world) verbs() []string {
	var out []string
	for _, r := range w.runs {
		out = append(out, string(r.verb))
	}
	return out
}

func TestClaimsThatAreNotOursAreLeftAlone(t *testing.T) {
	for name, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"another provisioner's class": func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("theirs") },
		"no such class":               func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("none") },
		"no class": func(c *corev1.PersistentVolumeClaim) {
			c.Spec.StorageClassName = new("")
			c.Annotations = map[string]string{annAsked: contract.ProvisionerName}
		},
		"handed to us under another's class": func(c *corev1.PersistentVolumeClaim) {
			c.Spec.StorageClassName = new("theirs")
			c.Annotations = map[string]string{annAsked: contract.ProvisionerName}
		},
		"a populator's": func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: new("example.com"), Kind: "Hello", Name: "world"}
		},
		"bound already": func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "by-hand" },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.goldClass(works)
				w.class("theirs", corev1.PersistentVolumeReclaimDelete, func(c *storagev1.StorageClass) { c.Provisioner = "example.com/theirs" })
				w.start()
				w.claim("data", change)
				w.run(time.Hour)
				if len(w.made("")) != 0 || len(w.events.said("", "")) != 0 {
					t.Error("a Job or an event\n" + w.story())
				}
			})
		})
	}
}

// copyOf asks for a copy of a claim of the same namespace.
func copyOf(name string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: name}
	}
}

func TestACopyByAnImageThatCannotCopyIsRefusedNotServedEmpty(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.goldClass(works)
		w.start()
		w.claim("other")
		w.run(time.Minute)
		made := len(w.made(""))
		w.claim("data", copyOf("other"))
		w.run(time.Hour)
		if len(w.made("")) != made {
			t.Error("a Job was launched\n" + w.story())
		}
		mustSay(t, w, onData, "DataSourceNotSupported", "data-sources")
	})
}

func TestACopyWaitsForItsSource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.goldClass(works)
		w.start()
		w.claim("data", copyOf("other"))
		w.run(time.Minute)
		mustServeNobody(t, w)
		mustSay(t, w, onData, "SourceNotFound", "app/other")
	})
}

func TestTheClassMayGoWhileItsClaimWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.goldClass(always(fails(75, "")))
		w.start()
		w.claim("data")
		w.run(time.Minute)
		drop(w, admin, get[*storagev1.StorageClass](w, "", "gold"))
		n := len(w.made(""))
		w.run(time.Hour)
		if len(w.made("")) != n {
			t.Error("a Job for a class that has gone")
		}
		w.images[gold] = image{does: works}
		w.class("gold", corev1.PersistentVolumeReclaimDelete)
		w.until("the claim is bound", 5*time.Minute, w.bound("data"))
	})
}
