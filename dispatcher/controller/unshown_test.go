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
)

// forbidClaims makes the API server refuse what the dispatcher writes on claims, as a webhook does.
func (w *world) forbidClaims(why error) {
	w.server.refusing(func(by, _ string, obj object) error {
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

func TestRule01AClaimThatMustNotBeWrittenOnHoldsUpNoRecord(t *testing.T) {
	for name, why := range refusals {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.goldClass(script(halfway(75), halfway(75)))
				w.forbidClaims(why)
				w.start()
				claim := w.claim("data")
				w.until("it is retried and bound", 10*time.Second, w.bound("data"))
				w.until("its record is released", 5*time.Second, func() bool { return len(w.records()) == 0 })
				w.mustRun("provision", "provision", "provision")
				w.mustShow(map[string]string{contract.AnnResult[len(contract.Domain):]: ""})
				w.mustSay(w.jobName(0), "ResultNotShown", "app/data", contract.Domain)
				drop(w, user, claim)
				w.until("nothing is left", time.Minute, w.empty)
			})
		})
	}
}

// What may be over in a moment is waited for: the result is worth more than the time.
func TestRule01AResultThatCannotBeShownForNowIsShownLater(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works)
		w.forbidClaims(apierrors.NewInternalError(errors.New("failed calling webhook: connection refused")))
		w.start()
		w.claim("data")
		w.until("the claim is bound", time.Minute, w.bound("data"))
		w.run(10 * time.Minute)
		if len(w.records()) != 1 {
			w.t.Error("the record was released before its result was shown")
		}
		w.forbidClaims(nil)
		w.until("its record is released", 2*time.Minute, func() bool { return len(w.records()) == 0 })
		w.mustShow(map[string]string{"result": "succeeded"})
		w.mustTell(w.jobName(0), "ResultNotShown", 0)
	})
}
