package plugin_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/plugin"
)

// told is an event about a claim, seen so many seconds after the first.
func told(seconds int, kind, reason, message string) corev1.Event {
	return corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: reason}, InvolvedObject: corev1.ObjectReference{UID: "1b2c"}, Type: kind, Reason: reason, Message: message,
		LastTimestamp: metav1.NewTime(time.Unix(int64(1e9+seconds), 0)),
	}
}

// What a user sees without the permission to read Jobs.
func TestAUserSeesWhatIsInTheWay(t *testing.T) {
	invalid := told(1, corev1.EventTypeWarning, "InvalidConfig", "the config has a fault")
	waits := told(9, corev1.EventTypeNormal, "ExternalProvisioning", "Waiting for a volume to be created")
	failed := map[string]string{contract.AnnResult: "failed", contract.AnnMessage: "the pool is full"}
	for name, c := range map[string]struct {
		phase  corev1.PersistentVolumeClaimPhase
		has    string // the claim's capacity
		notes  map[string]string
		events []corev1.Event
		state  plugin.State
		cause  string
	}{
		"bound":                    {corev1.ClaimBound, "1Gi", nil, nil, plugin.OK, ""},
		"bound, and does not grow": {corev1.ClaimBound, "512Mi", nil, []corev1.Event{told(1, corev1.EventTypeWarning, "ExpansionNotSupported", "no")}, plugin.Failed, "an event says: no"},
		"an event of Kubernetes hides no warning": {corev1.ClaimPending, "", nil, []corev1.Event{invalid, waits}, plugin.Failed, "an event says: the config has a fault"},
		"nothing but that event":                  {corev1.ClaimPending, "", nil, []corev1.Event{waits}, plugin.Working, "an event says: Waiting for a volume to be created"},
		"the result of an attempt":                {corev1.ClaimPending, "", failed, []corev1.Event{waits}, plugin.Failed, "the pool is full"},
		"the next attempt is at work":             {corev1.ClaimPending, "", failed, []corev1.Event{told(2, corev1.EventTypeNormal, "Provisioning", "Job")}, plugin.Working, "an event says: Job"},
		"lost":                                    {corev1.ClaimLost, "1Gi", nil, nil, plugin.Failed, "Kubernetes takes the claim for one that has lost its volume"},
		"another reason, and escape codes":        {corev1.ClaimPending, "", nil, []corev1.Event{told(1, corev1.EventTypeWarning, "\x1b[31m", "\x1b[31mno")}, plugin.Failed, "an event says: [31mno"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "1b2c", Annotations: c.notes}}
			claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
			claim.Status.Phase = c.phase
			if c.has != "" {
				claim.Spec.VolumeName = "pvc-1b2c"
				claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(c.has)}
			}
			client := fake.NewClientset()
			for _, e := range c.events {
				if _, err := client.CoreV1().Events("shop").Create(t.Context(), &e, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			r, err := plugin.ExplainToUser(t.Context(), client, claim, nil)
			if err != nil || r.State != c.state || r.Cause != c.cause || r.State == plugin.Failed && r.Remedy == "" || len(c.events) > 0 && r.Next != "" || r.Reason == "\x1b[31m" {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
}
