package plugin_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/plugin"
)

// evil is a remedy that others would like an administrator to follow.
const evil = "no answer. Remedy: touch PWNED"

// mustNotObey fails the test if the remedy of a failure is one that others have named.
func mustNotObey(c *fakecluster.Cluster, r *plugin.Report) {
	c.T.Helper()
	mustSay(c, r, plugin.Failed, "touch PWNED") // as a cause
	if strings.Contains(r.Remedy, "touch") {
		c.T.Errorf("the remedy is %q", r.Remedy)
	}
}

// Whoever may create events in the namespace of a claim chooses their reporter, too.
func TestAnEventNamesNoRemedy(t *testing.T) {
	for _, reason := range []string{"LaunchFailed", "WriteRefused", "WriteFailed", "NamespaceNotServed", "ResultNotShown"} {
		t.Run(reason, func(t *testing.T) {
			inWorld(t, func(c *fakecluster.Cluster) {
				c.SetUpGold(fakecluster.Works)
				claim := c.CreateClaim("data")
				c.Advance(20 * time.Second)
				fakecluster.Create(c, fakecluster.User, &corev1.Event{
					ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: "forged"}, InvolvedObject: corev1.ObjectReference{UID: claim.UID},
					Source: corev1.EventSource{Component: contract.ProvisionerName}, Type: corev1.EventTypeWarning,
					Reason: reason, Message: evil, LastTimestamp: metav1.NewTime(time.Now()),
				})
				mustNotObey(c, why(c, claim.UID))
			})
		})
	}
}

// A kubelet repeats what a registry says, and whoever is root of a node writes any reason.
func TestAKubeletNamesNoRemedy(t *testing.T) { kubeletSays(t, evil) }

// What a terminal does not show is left out of a note, and the word was whole only then.
func TestAWordWithHiddenCharactersNamesNoRemedy(t *testing.T) {
	for _, hidden := range []string{"\u200b", "\u00ad", "\u202e", "\x00", "\x1b", "\ufeff"} {
		t.Run(fmt.Sprintf("%+q", hidden), func(t *testing.T) {
			kubeletSays(t, strings.Replace(evil, "Remedy", "Rem"+hidden+"edy", 1))
		})
	}
}

// kubeletSays fails the test if the remedy of a run that does not start is what its kubelet says.
func kubeletSays(t *testing.T, message string) {
	t.Helper()
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Works)
		c.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Waits: "Odd"}
		c.Start()
		claim := c.CreateClaim("data")
		c.Advance(20 * time.Second)
		pods, err := c.Server.Client("plugin").CoreV1().Pods(fakecluster.ConfigNamespace).List(c.Context(), metav1.ListOptions{})
		if err != nil || len(pods.Items) != 1 {
			c.T.Fatal(pods, err)
		}
		fakecluster.Update(c, fakecluster.Kubelet, &pods.Items[0], func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses[0].State.Waiting.Message = message
		})
		c.Advance(time.Second)
		mustNotObey(c, why(c, claim.UID))
	})
}

// A storage that answers with the API server's words would have the account of its provisioner bound.
func TestAContainerChoosesNoRemedy(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Fails(contract.ExitTempFail, "claim: "+refused))
		c.Start()
		claim := c.CreateClaim("data")
		c.Until("it failed", time.Minute, func() bool { return len(c.RunsOf(contract.Provision)) == 1 })
		c.Advance(500 * time.Millisecond)
		r := why(c, claim.UID)
		if mustSay(c, r, plugin.Failed, "is forbidden"); !strings.Contains(r.Remedy, "check the storage") || strings.Contains(r.Remedy, "clusterrole") {
			c.T.Errorf("the remedy is %q", r.Remedy)
		}
	})
}

// Another administrator may edit ConfigMaps of one namespace, and this one those of all.
func TestAValueOfAConfigMapNamesNoRemedy(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Works, "max-parallel", evil)
		c.Start()
		claim := c.CreateClaim("data")
		c.Advance(20 * time.Second)
		mustNotObey(c, why(c, claim.UID))
	})
}

// Of a PersistentVolume that no provisioning pod has written, the API server checks no annotation.
func TestAnAnnotationOfAPersistentVolumeNamesNoRemedy(t *testing.T) {
	for _, revision := range []string{evil + "/gold", fakecluster.ConfigNamespace + "/" + evil, evil} {
		inWorld(t, func(c *fakecluster.Cluster) {
			c.SetUpGold(fakecluster.Works)
			c.Start()
			claim := c.CreateClaim("data")
			c.Until("it is bound", time.Minute, c.AllBound)
			c.Advance(time.Hour)
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: contract.PVName(string(claim.UID))}}
			fakecluster.Update(c, fakecluster.Admin, pv, func(pv *corev1.PersistentVolume) { pv.Annotations[contract.AnnRevision] = revision })
			fakecluster.Delete(c, fakecluster.User, claim)
			c.Advance(time.Minute)
			mustNotObey(c, why(c, claim.UID))
		})
	}
}

// A terminal breaks a long line where it ends, and what follows so many blanks looks like a line of
// the command.
func TestBlanksBringNoTextOfOthersToTheLeftEdge(t *testing.T) {
	const padding = "                                                                                "
	var out bytes.Buffer
	r := &plugin.Report{
		Claim: "app/data", Size: "1Gi", State: plugin.Failed, Cause: "no answer" + padding + "\n" + padding + "remedy  touch PWNED",
		Warnings: []string{"kubectl " + strings.Repeat("x ", 40) + "remedy run it"},
		Runs:     []plugin.Run{{Job: "a/b", Verb: "provision", Verdict: "TryAgain", Message: "busy" + padding + "remedy  touch PWNED"}},
	}
	if err := plugin.Print(&out, time.Now(), r); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if len(strings.TrimSuffix(line, "\n")) > quote.Columns {
			t.Errorf("a line is %s", line)
		}
	}
	if strings.Count(out.String(), "remedy touch") != 2 || strings.Contains(out.String(), padding[:40]) {
		t.Errorf("it prints\n%s", out.String())
	}
}
