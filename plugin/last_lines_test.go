package plugin_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/plugin"
)

// broken is a set-up in which a claim is not bound, as people have reported them.
type broken struct {
	set   func(*fakecluster.Cluster)
	claim func(*corev1.PersistentVolumeClaim)
	// cause and remedy are words of the last three lines.
	cause, remedy string
}

// longName is the name of a class, and not the value of a label.
var longName = strings.Repeat("gold-", 14) + "x"

// asUsual is a change of a claim that changes nothing.
func asUsual(*corev1.PersistentVolumeClaim) {}

// The cause and the remedy come last, where a terminal shows them.
func TestTheLastLinesNameCauseAndRemedy(t *testing.T) {
	for name, b := range map[string]broken{
		"no ConfigMap serves the class": {func(c *fakecluster.Cluster) {
			c.CreateClass("gold", corev1.PersistentVolumeReclaimDelete)
		}, asUsual, "has no provisioner config", "create a ConfigMap"},
		"the config has a key that is misspelt": {func(c *fakecluster.Cluster) {
			c.SetUpGold(fakecluster.Works, "maxparallel", "3")
		}, asUsual, "maxparallel", "max-parallel"},
		"the ServiceAccount lacks its label": {func(c *fakecluster.Cluster) {
			c.CreateClass("gold", corev1.PersistentVolumeReclaimDelete)
			c.CreateServiceAccount("false")
			c.CreateConfig("gold", "gold")
		}, asUsual, "ServiceAccount writer", "flex-provisioner.io/provisioner=true"},
		"a tool is missing in the image": {func(c *fakecluster.Cluster) {
			c.SetUpGold(fakecluster.Fails(127, "jq: not found"))
		}, asUsual, "exit code 127", "describe job"},
		"the storage refuses the credentials": {func(c *fakecluster.Cluster) {
			c.SetUpGold(fakecluster.Fails(contract.ExitNoPerm, "claim: login refused"))
		}, asUsual, "login refused", "Secret"},
		"the storage is full": {func(c *fakecluster.Cluster) {
			c.SetUpGold(fakecluster.Fails(contract.ExitCapacity, "claim: the pool has 10 MiB left"))
		}, asUsual, "10 MiB left", "free space"},
		"the request cannot be served": {func(c *fakecluster.Cluster) {
			c.SetUpGold(fakecluster.Fails(contract.ExitBadRequest, "claim: no ReadWriteMany here"))
		}, asUsual, "no ReadWriteMany here", "delete the claim"},
		"the config is wrong for the image": {func(c *fakecluster.Cluster) {
			c.SetUpGold(fakecluster.Fails(contract.ExitConfig, "claim: use-pool names no pool"))
		}, asUsual, "use-pool names no pool", "ConfigMap flex-provisioner/gold"},
		"the claim has a selector": {func(c *fakecluster.Cluster) {
			c.SetUpGold(fakecluster.Works)
		}, func(claim *corev1.PersistentVolumeClaim) {
			claim.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "a"}}
		}, "a selector chooses", "without a selector"},
		"the claim is of a class that does not exist": {func(c *fakecluster.Cluster) {
			c.SetUpGold(fakecluster.Works)
		}, func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = new("golden") }, "golden does not exist", "create it"},
		"the claim is of another provisioner": {func(c *fakecluster.Cluster) {
			c.SetUpGold(fakecluster.Works)
			fakecluster.Create(c, fakecluster.Admin, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Provisioner: "example.com/other"})
		}, func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = new("other") }, "example.com/other", "its own documentation"},
		"two ConfigMaps serve the class": {func(c *fakecluster.Cluster) {
			c.SetUpGold(fakecluster.Works)
			c.CreateConfig("gold-2", "gold")
		}, asUsual, "gold and gold-2", "keep one"},
		"the label of the ConfigMap is misspelt": {func(c *fakecluster.Cluster) {
			c.SetUpGold(fakecluster.Works)
			fakecluster.Update(c, fakecluster.Admin, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: fakecluster.ConfigNamespace, Name: "gold"}}, func(cm *corev1.ConfigMap) {
				cm.Labels[contract.LabelType] = "provisioner-conf"
			})
		}, asUsual, "gold", "type=provisioner-config"},
		"the image cannot be pulled": {func(c *fakecluster.Cluster) {
			c.SetUpGold(fakecluster.Works)
			c.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Waits: "ErrImagePull"}
		}, asUsual, "it cannot be had", "ConfigMap flex-provisioner/gold"},
		"the command of the image does not exist": {func(c *fakecluster.Cluster) {
			c.SetUpGold(fakecluster.Works)
			c.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, StartFails: "StartError"}
		}, asUsual, "StartError", "correct the script, the key image (or --script-image of the dispatcher, where the config has a script alone), or command and args in the pod-template, in the class's ConfigMap\n"},
		"the node has no room for the pod": {func(c *fakecluster.Cluster) {
			c.SetUpGold(fakecluster.Works)
			c.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Rejected: "OutOfcpu"}
		}, asUsual, "OutOfcpu", "change resources or nodes in the class's ConfigMap\n"},
		"the ServiceAccount does not exist": {func(c *fakecluster.Cluster) {
			c.CreateClass("gold", corev1.PersistentVolumeReclaimDelete)
			c.CreateConfig("gold", "gold")
		}, asUsual, "ServiceAccount writer", "create"},
		"the ServiceAccount may not write PersistentVolumes": {func(c *fakecluster.Cluster) {
			c.SetUpGold(fakecluster.Fails(contract.ExitTempFail, `persistentvolumes is forbidden: User "system:serviceaccount:flex-provisioner:writer" cannot create resource "persistentvolumes"`))
			unbind(c)
		}, asUsual, "persistentvolumes is forbidden", "--clusterrole=flex-provisioner-volumes"},
		"verbs lacks delete": {func(c *fakecluster.Cluster) {
			c.SetUpGold(fakecluster.Works, "verbs", "provision")
		}, asUsual, "verb delete", "ConfigMap"},
		"the container writes no PersistentVolume": {func(c *fakecluster.Cluster) {
			c.SetUpGold(fakecluster.Fails(0, ""))
		}, asUsual, "did not create the PersistentVolume", "describe job"},
		"the name of the class is longer than a label's value": {func(c *fakecluster.Cluster) {
			c.CreateClass(longName, corev1.PersistentVolumeReclaimDelete)
		}, func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = new(longName) }, "has no provisioner config", "flex-provisioner.io/config"},
		"the ConfigMap was edited, and an older revision serves the class": {func(c *fakecluster.Cluster) {
			c.SetUpGold(fakecluster.Works)
			c.Start()
			c.CreateClaim("first")
			c.Advance(20 * time.Second)
			c.Stop()
			c.UpdateConfig("maxparallel", "3")
			c.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Fails(contract.ExitCapacity, "claim: the pool has 10 MiB left")}
		}, asUsual, "10 MiB left", "free space"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(c *fakecluster.Cluster) {
				b.set(c)
				c.Start()
				claim := c.CreateClaim("data", b.claim)
				c.Advance(20 * time.Second)
				r := why(c, claim.UID)
				if page := reason.Page(r.Reason); (page == "") != (r.Reason == "") || page != "" && !strings.Contains(lastLines(c, r, 5), "more    "+page) {
					c.T.Errorf("the reason %q has the page %q in:\n%s", r.Reason, page, lastLines(c, r, 5))
				}
				last := lastLines(c, r, 3)
				if r.State != plugin.Failed || !strings.Contains(last, b.cause) || !strings.Contains(last, b.remedy) {
					c.T.Errorf("state %s, want the cause %q and the remedy %q in the last lines:\n%s", r.State, b.cause, b.remedy, last)
				}
			})
		})
	}
}
