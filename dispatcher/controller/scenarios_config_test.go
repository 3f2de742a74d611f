package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// bare sets up everything but a config.
func (w *world) bare() {
	w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
	w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete)
	w.CreateServiceAccount("true")
}

const onData = "PersistentVolumeClaim/data"

func TestAClaimWithoutAConfigWaitsForItAndSaysSo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bare()
		w.Start()
		w.CreateClaim("data")
		w.Advance(time.Hour)
		w.MustCreateNoJob()
		w.MustEmitSome(onData, "WaitingForConfig", "class gold", "namespace "+fakecluster.ConfigNamespace, "type=provisioner-config", "storage-class=gold")
		w.CreateConfig("gold", "gold")
		w.Until("the claim is bound", 5*time.Second, w.IsBound("data"))
	})
}

func TestTwoConfigsForOneClassAreBothNamedAndNeitherIsUsed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bare()
		w.CreateConfig("first", "gold")
		second := w.CreateConfig("second", "gold")
		w.Start()
		w.CreateClaim("data")
		w.Advance(time.Hour)
		w.MustCreateNoJob()
		w.MustEmitSome(onData, "AmbiguousConfig", "first and second", "class gold")
		fakecluster.Delete(w, fakecluster.Admin, second)
		w.Until("the claim is bound", 5*time.Second, w.IsBound("data"))
	})
}

func TestAnInvalidConfigIsReportedWithThePathOfEachFault(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bare()
		w.CreateConfig("gold", "gold", "timeout", "soon", "nodeSelector", "a=b")
		w.Start()
		w.CreateClaim("data")
		w.Advance(time.Hour)
		w.MustCreateNoJob()
		for _, about := range []string{onData, "ConfigMap/gold"} {
			w.MustEmitSome(about, "InvalidConfig", "data[timeout]", "data[nodeSelector]", "did you mean node-selector")
		}
		fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*corev1.ConfigMap](w, fakecluster.ConfigNamespace, "gold"), func(cm *corev1.ConfigMap) {
			delete(cm.Data, "timeout")
			delete(cm.Data, "nodeSelector")
		})
		w.Until("the claim is bound", 5*time.Second, w.IsBound("data"))
	})
}

func TestATemplateThatReachesForTheNodeIsRefused(t *testing.T) {
	const template = "spec: {hostNetwork: true}"
	inWorld(t, func(w *world) {
		w.bare()
		w.CreateConfig("gold", "gold", "pod-template", template)
		w.Start()
		w.CreateClaim("data")
		w.Advance(time.Minute)
		w.MustCreateNoJob()
		w.MustEmitSome("ConfigMap/gold", "InvalidConfig", "pod-template", "host namespaces", "--allow")
	})
}

func TestAServiceAccountMustExistAndCarryTheLabel(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete)
		w.CreateConfig("gold", "gold")
		w.Start()
		w.CreateClaim("data")
		w.Advance(time.Minute)
		w.MustEmitSome(onData, "ServiceAccountRefused", "writer", "flex-provisioner.io/provisioner=true")
		w.CreateServiceAccount("false")
		w.Advance(time.Minute)
		w.MustCreateNoJob()
		fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*corev1.ServiceAccount](w, fakecluster.ConfigNamespace, "writer"), func(a *corev1.ServiceAccount) { a.Labels[contract.LabelProvisioner] = "true" })
		w.Until("the claim is bound", 5*time.Second, w.IsBound("data"))
	})
}

func TestConfigsElsewhereAreUnusedUnlessTheClassNamesTheirNamespace(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bare()
		w.options.Namespaces = []string{fakecluster.ConfigNamespace, "team"}
		place := func(obj fakecluster.Object, ns string) fakecluster.Object {
			obj.SetNamespace(ns)
			obj.SetUID("")
			obj.SetResourceVersion("")
			return obj
		}
		cm := w.CreateConfig("gold", "gold")
		fakecluster.Delete(w, fakecluster.Admin, cm)
		fakecluster.Create(w, fakecluster.Admin, place(cm, "team").(*corev1.ConfigMap))
		fakecluster.Create(w, fakecluster.Admin, place(cm.DeepCopy(), "kube-public").(*corev1.ConfigMap))
		fakecluster.Create(w, fakecluster.Admin, place(fakecluster.Get[*corev1.ServiceAccount](w, fakecluster.ConfigNamespace, "writer"), "team").(*corev1.ServiceAccount))
		w.Start()
		w.CreateClaim("data")
		w.Advance(time.Minute)
		w.MustCreateNoJob()
		w.MustEmitSome(onData, "WaitingForConfig", "namespace "+fakecluster.ConfigNamespace)
		// A class cannot be changed, but it can be made anew.
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*storagev1.StorageClass](w, "", "gold"))
		w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete, func(c *storagev1.StorageClass) {
			c.Parameters = map[string]string{contract.ParamConfigNamespace: "team"}
		})
		w.Until("the claim is bound", 5*time.Second, w.IsBound("data"))
		if job := w.CreatedJobs("")[0]; job.Namespace != "team" {
			w.T.Errorf("its Job ran in %s", job.Namespace)
		}
	})
}

func TestAClassThatNamesANamespaceWithoutConfigsIsReported(t *testing.T) {
	inWorld(t, func(w *world) {
		w.CreateServiceAccount("true")
		w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete, func(c *storagev1.StorageClass) {
			c.Parameters = map[string]string{contract.ParamConfigNamespace: "team"}
		})
		w.Start()
		w.CreateClaim("data")
		w.Advance(time.Minute)
		w.MustCreateNoJob()
		w.MustEmitSome(onData, "NamespaceNotServed", "team", "--config-namespaces")
	})
}

func TestOursOnlySoOtherClaimsAreLeftAlone(t *testing.T) {
	for name, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"another provisioner's class": func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("theirs") },
		"no such class":               func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("none") },
		"no class": func(c *corev1.PersistentVolumeClaim) {
			c.Spec.StorageClassName = new("")
			c.Annotations = map[string]string{fakecluster.AnnStorageProvisioner: contract.ProvisionerName}
		},
		"handed to us under another's class": func(c *corev1.PersistentVolumeClaim) {
			c.Spec.StorageClassName = new("theirs")
			c.Annotations = map[string]string{fakecluster.AnnStorageProvisioner: contract.ProvisionerName}
		},
		"a populator's": func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: new("example.com"), Kind: "Hello", Name: "world"}
		},
		"bound already": func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "by-hand" },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works)
				w.CreateClass("theirs", corev1.PersistentVolumeReclaimDelete, func(c *storagev1.StorageClass) { c.Provisioner = "example.com/theirs" })
				w.Start()
				w.CreateClaim("data", change)
				w.Advance(time.Hour)
				if len(w.CreatedJobs("")) != 0 || len(w.Events.About("", "")) != 0 {
					w.T.Error("a Job or an event\n" + w.Story())
				}
			})
		})
	}
}

// copyOf asks for a clone of another claim of the namespace.
func copyOf(name string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: name}
	}
}

func TestACloneByAnImageThatCannotCloneIsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		w.CreateClaim("other")
		w.Advance(time.Minute)
		made := len(w.CreatedJobs(""))
		w.CreateClaim("data", copyOf("other"))
		w.Advance(time.Hour)
		if len(w.CreatedJobs("")) != made {
			w.T.Error("a Job was launched\n" + w.Story())
		}
		w.MustEmitSome(onData, "DataSourceNotSupported", "data-sources", `smartclone: "true"`)
	})
}

// TestAClonesRequestNamesItsSource: the source claim by name and UID, and its PV.
func TestAClonesRequestNamesItsSource(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim")
		w.Start()
		w.provisioned("other")
		w.CreateClaim("data", copyOf("other"))
		w.Until("the copy is bound", time.Minute, w.IsBound("data"))
		other := fakecluster.Get[*corev1.PersistentVolumeClaim](w, "app", "other")
		want := contract.Source{
			Kind: "PersistentVolumeClaim", Namespace: "app", Name: "other", UID: string(other.UID), PVName: other.Spec.VolumeName,
		}
		if got := w.Runs[len(w.Runs)-1].Request.Source; got == nil || *got != want {
			w.T.Errorf("the request's source is %+v, want %+v", got, want)
		}
	})
}

func TestACloneWaitsForItsSource(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim")
		w.Start()
		w.CreateClaim("data", copyOf("other"))
		w.Advance(time.Minute)
		w.MustCreateNoJob()
		w.MustEmitSome(onData, "SourceNotFound", "app/other")
	})
}

// Its user wrote the annotation, and whoever may read events reads what is said of it.
func TestASourceIsNamedInOneLine(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim")
		w.Start()
		w.CreateClaim("data", func(c *corev1.PersistentVolumeClaim) {
			fakecluster.Annotate(c, contract.AnnCloneRequest, "other\nRemedy: kubectl delete namespace app")
		})
		w.Advance(time.Minute)
		w.MustEmitSome(onData, "SourceNotFound", `"app/other\nRemedy: kubectl delete namespace app" does not exist`)
	})
}

// Whose a claim is says its class. While that does not exist, nothing is said and nothing is created.
func TestNothingIsSaidOfAClaimWithoutItsClass(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*storagev1.StorageClass](w, "", "gold"))
		w.Start()
		w.CreateClaim("data")
		w.Advance(time.Hour)
		w.MustCreateNoJob()
		if all := w.Events.About(onData, ""); len(all) > 0 {
			w.T.Errorf("events of a claim without a class: %v", all)
		}
		w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete)
		w.Until("the claim is bound", 5*time.Minute, w.IsBound("data"))
	})
}

func TestTheClassMayGoWhileItsClaimWaits(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Fails(75, "")))
		w.Start()
		w.CreateClaim("data")
		w.Advance(time.Minute)
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*storagev1.StorageClass](w, "", "gold"))
		n := len(w.CreatedJobs(""))
		w.Advance(time.Hour)
		if len(w.CreatedJobs("")) != n {
			w.T.Error("a Job for a class that has gone")
		}
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete)
		w.Until("the claim is bound", 5*time.Minute, w.IsBound("data"))
	})
}

func TestAPlainTextTokenWorksAndItsAdministratorIsWarned(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "service-token", "s3cret")
		w.Start()
		w.provisioned("data")
		w.MustEmit("ConfigMap/gold", "ConfigWarning", 1, "env-from-secret")
		w.MustNotContain("", "s3cret")
		if got := w.Runs[0].Request.Properties["service-token"]; got != "s3cret" {
			w.T.Errorf("the image got %q", got)
		}
	})
}

func TestWhoAskedIsPassedOnOnlyWhereItCanBeTrusted(t *testing.T) {
	for trust, want := range map[bool]string{true: "alice", false: ""} {
		inWorld(t, func(w *world) {
			w.options.TrustUsername = trust
			w.SetUpGold(fakecluster.Works)
			w.Start()
			w.CreateClaim("data", func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{jobs.AnnUsername: "alice"} })
			w.Until("the claim is bound", time.Minute, w.IsBound("data"))
			if got := w.Runs[0].Request.Username; got != want {
				w.T.Errorf("trusted %v: the image is told %q", trust, got)
			}
		})
	}
}

func TestAVolumeAttributesClassNeedsAnImageThatSupportsIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		w.CreateClaim("data", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = new("fast") })
		w.Advance(time.Hour)
		w.MustCreateNoJob()
		w.MustEmitSome("PersistentVolumeClaim/data", "AttributesClassNotSupported", "fast", "volume-attributes-classes: true", "csi")
		w.UpdateConfig("volume-attributes-classes", "true")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
	})
}
