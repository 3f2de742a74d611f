package controller_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// forbidClaims makes the API server refuse what the dispatcher writes on claims, as a webhook does.
func (w *world) forbidClaims(why error) {
	w.Server.Refuse(func(by, _ string, obj fakecluster.Object) error {
		if _, isClaim := obj.(*corev1.PersistentVolumeClaim); isClaim && by == "dispatcher" {
			return why
		}
		return nil
	})
}

// refusals are the ways in which an API server says that it never will.
var refusals = map[string]error{
	"a policy":                  apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentVolumeClaim"}, "data", nil),
	"RBAC":                      apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "data", errors.New("no")),
	"a webhook with no reason":  &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusBadRequest, Message: "no"}},
	"a webhook with its reason": &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Message: "no"}},
}

func TestRecordBeforeStorageIsReleasedAlthoughItsClaimCannotBeWritten(t *testing.T) {
	for name, why := range refusals {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Script(fakecluster.Halfway(75), fakecluster.Halfway(75)))
				w.forbidClaims(why)
				w.Start()
				claim := w.CreateClaim("data")
				w.Until("it is retried and bound", 10*time.Second, w.IsBound("data"))
				w.Until("its record was released", 5*time.Second, func() bool { return len(w.HeldRecords()) == 0 })
				w.MustRun("provision", "provision", "provision")
				w.MustShow(map[string]string{contract.AnnResult[len(contract.Domain):]: ""})
				w.MustEmitSome(w.jobName(0), "ResultNotShown", "app/data", contract.Domain)
				fakecluster.Delete(w, fakecluster.User, claim)
				w.Until("nothing is left", time.Minute, w.Empty)
			})
		})
	}
}

// What may be over in a moment is waited for, as long as there is the Job.
func TestOwnAnswerIsPublishedAsLongAsThereIsTheJob(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.forbidClaims(apierrors.NewInternalError(errors.New("failed calling webhook: connection refused")))
		w.Start()
		w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.Advance(2 * time.Minute)
		w.forbidClaims(nil)
		w.Advance(2 * time.Minute)
		w.MustShow(map[string]string{"result": "succeeded"})
		w.MustEmit(w.jobName(0), "ResultNotShown", 0)
	})
}
