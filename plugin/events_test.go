package plugin_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/plugin"
)

// The dispatcher continues without the annotations of a result, and so does what is said of the claim.
func TestAResultThatCannotBeShownIsAWarning(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.Server.Refuse(func(by, verb string, obj fakecluster.Object) error {
			if _, is := obj.(*corev1.PersistentVolumeClaim); is && by == "dispatcher" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, obj.GetName(), nil)
			}
			return nil
		})
		claim := bind(c, fakecluster.Works)
		emitted := c.Events.About("PersistentVolumeClaim/data", "ResultNotShown")
		if len(emitted) == 0 {
			c.T.Fatal("no event")
		}
		fakecluster.Create(c, fakecluster.Admin, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "refused"}, InvolvedObject: corev1.ObjectReference{UID: claim.UID}, Type: corev1.EventTypeWarning,
			Reason: "ResultNotShown", Message: emitted[0].Note, LastTimestamp: metav1.NewTime(time.Now()),
		})
		mustSay(c, why(c, claim.UID), plugin.OK, "warning", "refuses the annotations of the result")
	})
}
