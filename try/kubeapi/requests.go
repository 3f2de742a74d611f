package kubeapi

import (
	"context"
	"fmt"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"
)

// largest is the longest body that an API server reads (MaxRequestBodyBytes of k8s.io/apiserver).
const largest = 3 << 20

// object is a pointer to an object of Kubernetes.
type object[T any] interface {
	*T
	runtime.Object
}

// create returns a handler that has a client create an object of a kind.
func create[T any, P object[T]](
	kind string, by func(context.Context, P, metav1.CreateOptions) (P, error),
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var options metav1.CreateOptions
		wanted, version := P(new(T)), corev1.SchemeGroupVersion
		err := scheme.ParameterCodec.DecodeParameters(r.URL.Query(), version, &options)
		if err != nil {
			refuse(w, apierrors.NewBadRequest(err.Error()))
			return
		}
		strict := options.FieldValidation == metav1.FieldValidationStrict
		if err := decode(http.MaxBytesReader(w, r.Body, largest), wanted, kind, strict); err != nil {
			refuse(w, apierrors.NewBadRequest(err.Error()))
			return
		}
		created, err := by(r.Context(), wanted, options)
		if err != nil {
			refuse(w, err)
			return
		}
		answer(w, http.StatusCreated, typed(created, kind))
	}
}

// decode reads an object as an API server does: without regard to fields that it does not know, or
// strictly. The texts are the server's (createHandler in pkg/endpoints/handlers of k8s.io/apiserver).
func decode(body io.Reader, into runtime.Object, kind string, strict bool) error {
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	unknown, err := kjson.UnmarshalStrict(text, into)
	if err == nil && strict && len(unknown) > 0 {
		err = runtime.NewStrictDecodingError(unknown)
	}
	if err != nil {
		return fmt.Errorf(`%s in version "v1" cannot be handled as a %[1]s: %w`, kind, err)
	}
	apiVersion, named := into.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	if named != "" && named != kind || apiVersion != "" && apiVersion != "v1" {
		return fmt.Errorf("%s in version %q cannot be handled as a %s", named, apiVersion, kind)
	}
	return nil
}

// get returns a handler that has a client get an object.
func get[P runtime.Object](
	kind string, by func(context.Context, string, metav1.GetOptions) (P, error),
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		found, err := by(r.Context(), r.PathValue("name"), metav1.GetOptions{})
		if err != nil {
			refuse(w, err)
			return
		}
		answer(w, http.StatusOK, typed(found, kind))
	}
}

// remove returns a handler that has a client delete an object. Options are refused: a deletion
// without its precondition could be one too many.
func remove(by func(context.Context, string, metav1.DeleteOptions) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 || r.URL.RawQuery != "" {
			refuse(w, apierrors.NewBadRequest("options of a deletion are not supported here"))
			return
		}
		if err := by(r.Context(), r.PathValue("name"), metav1.DeleteOptions{}); err != nil {
			refuse(w, err)
			return
		}
		answer(w, http.StatusOK, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
		})
	}
}

// typed returns an object with its kind, which clients leave out.
func typed(o runtime.Object, kind string) runtime.Object {
	o = o.DeepCopyObject()
	o.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return o
}
