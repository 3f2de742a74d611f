package conform_test

import (
	"errors"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// client returns a client of an API server that also has what the cluster in memory leaves out. It
// calls stop with the request that a run is to be interrupted at. Claims are a user's, and what is
// changed of a PersistentVolume is an administrator's.
func (w *world) client(stop func()) *fake.Clientset {
	client, admin := w.Server.Client(fakecluster.User), w.Server.Client(fakecluster.Admin)
	client.PrependReactor("patch", "persistentvolumes",
		func(a clienttesting.Action) (bool, runtime.Object, error) {
			obj, err := admin.Invokes(a, nil)
			return true, obj, err
		})
	locked := func(does func(clienttesting.Action) (runtime.Object, error)) clienttesting.ReactionFunc {
		return func(a clienttesting.Action) (bool, runtime.Object, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			obj, err := does(a)
			return obj != nil || err != nil, obj, err
		}
	}
	client.PrependReactor("*", "namespaces", locked(func(a clienttesting.Action) (runtime.Object, error) {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "flex-conform-x", UID: "ns"}}, nil
	}))
	client.PrependReactor("*", "validatingadmissionpolicies", locked(func(a clienttesting.Action) (runtime.Object, error) {
		w.closed = a.GetVerb() == "create"
		return &admissionregistrationv1.ValidatingAdmissionPolicy{}, nil
	}))
	client.PrependReactor("*", "validatingadmissionpolicybindings", locked(func(clienttesting.Action) (runtime.Object, error) {
		return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}, nil
	}))
	client.PrependReactor("create", "persistentvolumes", locked(func(a clienttesting.Action) (runtime.Object, error) {
		if create, is := a.(clienttesting.CreateActionImpl); !is || len(create.CreateOptions.DryRun) == 0 {
			return nil, nil //nolint:nilnil // another reactor answers
		}
		if w.closed {
			return nil, errors.New(refusal)
		}
		return a.(clienttesting.CreateActionImpl).Object, nil
	}))
	requests := 0
	client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		if requests++; requests == w.interruptAt {
			stop()
		}
		return false, nil, nil
	})
	client.PrependReactor("delete", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		w.mustBeOwn(a.(clienttesting.DeleteActionImpl))
		return false, nil, nil
	})
	client.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		list := &corev1.EventList{}
		for _, e := range w.Events.Since(0) {
			if !strings.HasPrefix(e.About, "Job") {
				list.Items = append(list.Items, corev1.Event{InvolvedObject: corev1.ObjectReference{Name: e.About}, Message: e.Note})
			}
		}
		return true, list, nil
	})
	return client
}
