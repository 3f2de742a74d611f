package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// bare sets up everything but a config.
func (w *world) bare() {
	w.images[gold] = image{does: works}
	w.class("gold", corev1.PersistentVolumeReclaimDelete)
	w.account("true")
}

const onData = "PersistentVolumeClaim/data"

func TestAClaimWithoutAConfigWaitsForItAndSaysSo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bare()
		w.start()
		w.claim("data")
		w.run(time.Hour)
		w.mustServeNobody()
		w.mustSay(onData, "WaitingForConfig", "class gold", "namespace "+home, "type=provisioner-config", "storage-class=gold")
		w.config("gold", "gold")
		w.until("the claim is bound", 5*time.Second, w.bound("data"))
	})
}

func TestRule12TwoConfigsForOneClassAreBothNamedAndNeitherServes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bare()
		w.config("first", "gold")
		second := w.config("second", "gold")
		w.start()
		w.claim("data")
		w.run(time.Hour)
		w.mustServeNobody()
		w.mustSay(onData, "AmbiguousConfig", "first and second", "class gold")
		drop(w, admin, second)
		w.until("the claim is bound", 5*time.Second, w.bound("data"))
	})
}

func TestItem03AnInvalidConfigIsToldWithAllItsFaultsWhereTheyAre(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bare()
		w.config("gold", "gold", "timeout", "soon", "nodeSelector", "a=b")
		w.start()
		w.claim("data")
		w.run(time.Hour)
		w.mustServeNobody()
		for _, about := range []string{onData, "ConfigMap/gold"} {
			w.mustSay(about, "InvalidConfig", "data[timeout]", "data[nodeSelector]", "did you mean node-selector")
		}
		edit(w, admin, get[*corev1.ConfigMap](w, home, "gold"), func(cm *corev1.ConfigMap) {
			delete(cm.Data, "timeout")
			delete(cm.Data, "nodeSelector")
		})
		w.until("the claim is bound", 5*time.Second, w.bound("data"))
	})
}

func TestItem04ATemplateThatReachesForTheNodeIsRefused(t *testing.T) {
	const template = "spec: {hostNetwork: true}"
	inWorld(t, func(w *world) {
		w.bare()
		w.config("gold", "gold", "pod-template", template)
		w.start()
		w.claim("data")
		w.run(time.Minute)
		w.mustServeNobody()
		w.mustSay("ConfigMap/gold", "InvalidConfig", "pod-template", "host namespaces", "--allow")
	})
}

func TestItem01AServiceAccountMustExistAndCarryTheLabel(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images[gold] = image{does: works}
		w.class("gold", corev1.PersistentVolumeReclaimDelete)
		w.config("gold", "gold")
		w.start()
		w.claim("data")
		w.run(time.Minute)
		w.mustSay(onData, "ServiceAccountRefused", "writer", "flex-provisioner.io/provisioner=true")
		w.account("false")
		w.run(time.Minute)
		w.mustServeNobody()
		edit(w, admin, get[*corev1.ServiceAccount](w, home, "writer"), func(a *corev1.ServiceAccount) { a.Labels[contract.LabelProvisioner] = "true" })
		w.until("the claim is bound", 5*time.Second, w.bound("data"))
	})
}

func TestItem03ConfigsElsewhereServeNobodyUnlessTheClassNamesTheirNamespace(t *testing.T) {
	inWorld(t, func(w *world) {
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
		w.mustServeNobody()
		w.mustSay(onData, "WaitingForConfig", "namespace "+home)
		// A class cannot be changed, but it can be made anew.
		drop(w, admin, get[*storagev1.StorageClass](w, "", "gold"))
		w.class("gold", corev1.PersistentVolumeReclaimDelete, func(c *storagev1.StorageClass) {
			c.Parameters = map[string]string{contract.ParamConfigNamespace: "team"}
		})
		w.until("the claim is bound", 5*time.Second, w.bound("data"))
		if job := w.made("")[0]; job.namespace != "team" {
			w.t.Errorf("its Job ran in %s", job.namespace)
		}
	})
}

func TestAClassThatNamesANamespaceWhichIsNotServedIsToldSo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.account("true")
		w.class("gold", corev1.PersistentVolumeReclaimDelete, func(c *storagev1.StorageClass) {
			c.Parameters = map[string]string{contract.ParamConfigNamespace: "team"}
		})
		w.start()
		w.claim("data")
		w.run(time.Minute)
		w.mustServeNobody()
		w.mustSay(onData, "NamespaceNotServed", "team", "--config-namespaces")
	})
}

func TestRule11ClaimsThatAreNotOursAreLeftAlone(t *testing.T) {
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
			inWorld(t, func(w *world) {
				w.goldClass(works)
				w.class("theirs", corev1.PersistentVolumeReclaimDelete, func(c *storagev1.StorageClass) { c.Provisioner = "example.com/theirs" })
				w.start()
				w.claim("data", change)
				w.run(time.Hour)
				if len(w.made("")) != 0 || len(w.events.said("", "")) != 0 {
					w.t.Error("a Job or an event\n" + w.story())
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

func TestItem06ACopyByAnImageThatCannotCopyIsRefusedNotServedEmpty(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		w.claim("other")
		w.run(time.Minute)
		made := len(w.made(""))
		w.claim("data", copyOf("other"))
		w.run(time.Hour)
		if len(w.made("")) != made {
			w.t.Error("a Job was launched\n" + w.story())
		}
		w.mustSay(onData, "DataSourceNotSupported", "data-sources")
	})
}

// TestItem06ACopysRequestSaysWhoseVolumeItIs: the source claim by name and UID, and its PV.
func TestItem06ACopysRequestSaysWhoseVolumeItIs(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "data-sources", "PersistentVolumeClaim")
		w.start()
		w.settled("other")
		w.claim("data", copyOf("other"))
		w.until("the copy is bound", time.Minute, w.bound("data"))
		other := get[*corev1.PersistentVolumeClaim](w, "app", "other")
		want := contract.Source{
			Kind: "PersistentVolumeClaim", Namespace: "app", Name: "other", UID: string(other.UID), PVName: other.Spec.VolumeName,
		}
		if got := w.runs[len(w.runs)-1].request.Source; got == nil || *got != want {
			w.t.Errorf("the request's source is %+v, want %+v", got, want)
		}
	})
}

func TestItem06ACopyWaitsForItsSource(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.start()
		w.claim("data", copyOf("other"))
		w.run(time.Minute)
		w.mustServeNobody()
		w.mustSay(onData, "SourceNotFound", "app/other")
	})
}

func TestTheClassMayGoWhileItsClaimWaits(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(always(fails(75, "")))
		w.start()
		w.claim("data")
		w.run(time.Minute)
		drop(w, admin, get[*storagev1.StorageClass](w, "", "gold"))
		n := len(w.made(""))
		w.run(time.Hour)
		if len(w.made("")) != n {
			w.t.Error("a Job for a class that has gone")
		}
		w.images[gold] = image{does: works}
		w.class("gold", corev1.PersistentVolumeReclaimDelete)
		w.until("the claim is bound", 5*time.Minute, w.bound("data"))
	})
}

func TestAPlainTextTokenWorksAndItsAdministratorIsWarned(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "service-token", "s3cret")
		w.start()
		w.settled("data")
		w.mustTell("ConfigMap/gold", "ConfigWarning", 1, "env-from-secret")
		w.mustNotSay("s3cret")
		if got := w.runs[0].request.Properties["service-token"]; got != "s3cret" {
			w.t.Errorf("the image got %q", got)
		}
	})
}

func TestItem08WhoAskedIsPassedOnOnlyWhereItCanBeTrusted(t *testing.T) {
	for trust, want := range map[bool]string{true: "alice", false: ""} {
		inWorld(t, func(w *world) {
			w.options.TrustUsername = trust
			w.goldClass(works)
			w.start()
			w.claim("data", func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{jobs.AnnUsername: "alice"} })
			w.until("the claim is bound", time.Minute, w.bound("data"))
			if got := w.runs[0].request.Username; got != want {
				w.t.Errorf("trusted %v: the image is told %q", trust, got)
			}
		})
	}
}
