package try

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clienttesting "k8s.io/client-go/testing"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// client returns a client of a person, who also sees events and the logs of containers.
func (w *world) client() kubernetes.Interface {
	client := w.Server.Client(fakecluster.User)
	client.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		list := &corev1.EventList{}
		for _, e := range w.Events.Since(0) {
			if claim, ok := strings.CutPrefix(e.About, claimKind); ok {
				list.Items = append(list.Items, corev1.Event{
					InvolvedObject: corev1.ObjectReference{Name: claim}, Type: e.Type, Reason: e.Reason, Message: e.Note, LastTimestamp: metav1.NewTime(e.At),
				})
			}
		}
		return true, list, nil
	})
	client.PrependReactor("get", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "log" {
			return false, nil, nil
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		return true, &runtime.Unknown{Raw: []byte(w.listed)}, nil
	})
	client.PrependReactor("*", "validatingadmissionpolicies", w.notePolicy)
	return client
}

const claimKind = "PersistentVolumeClaim/"

// notePolicy keeps the policy by which conform refuses PersistentVolumes for a moment.
func (w *world) notePolicy(a clienttesting.Action) (bool, runtime.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch a := a.(type) {
	case clienttesting.CreateActionImpl:
		policy := a.Object.(*admissionregistrationv1.ValidatingAdmissionPolicy)
		w.policies[policy.Name] = policy.Spec.Validations[0]
	case clienttesting.DeleteActionImpl:
		delete(w.policies, a.Name)
	}
	return false, nil, nil // it is stored, too
}

// refuse refuses the PersistentVolumes of the namespace that a policy of its name is for, and those of
// a node's directories that the shipped policy refuses.
func (w *world) refuse(_, verb string, obj fakecluster.Object) error {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || verb != "create" || pv.Spec.ClaimRef == nil {
		return nil
	}
	if err := w.refuseNode(pv); err != nil {
		return err
	}
	w.mu.Lock()
	rule, refused := w.policies[pv.Spec.ClaimRef.Namespace]
	w.mu.Unlock()
	if !refused {
		return nil
	}
	err := apierrors.NewForbidden(corev1.Resource("persistentvolumes"), pv.Name, errors.New(rule.Message))
	if *rule.Reason == metav1.StatusReasonRequestEntityTooLarge {
		err.ErrStatus.Reason, err.ErrStatus.Code = *rule.Reason, http.StatusRequestEntityTooLarge
	}
	return err
}

// nodeDirectory is the directory of a node that the shipped policy admits volumes in.
const nodeDirectory = "/var/lib/flex-volumes"

// refuseNode refuses a PersistentVolume as deploy/base/pv-source-policy.yaml does by its directory of a
// node. Where the class's pods mount another one, the policy has to be changed for it, too.
func (w *world) refuseNode(pv *corev1.PersistentVolume) error {
	allowed := w.allowed[w.trial.Config.Source.Namespace]
	if len(allowed.HostPaths) == 0 {
		allowed.HostPaths = []string{nodeDirectory}
	}
	why := runs.CheckNode(pv.Name, pv.Spec.PersistentVolumeSource, allowed)
	if why == nil {
		return nil
	}
	err := apierrors.NewForbidden(corev1.Resource("persistentvolumes"), pv.Name,
		fmt.Errorf("the policy flex-pv-source of a cluster refuses it: %w", why))
	err.ErrStatus.Reason, err.ErrStatus.Code = metav1.StatusReasonInvalid, http.StatusUnprocessableEntity
	return err
}
