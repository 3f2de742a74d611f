package admin

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// ClusterUID returns the UID of the namespace kube-system, which no two clusters share and which
// stays as long as the cluster exists. It is empty where there is no such namespace.
func ClusterUID(ctx context.Context, client kubernetes.Interface) (string, error) {
	ns, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("get the namespace %s, whose UID is the cluster's: %w", metav1.NamespaceSystem, err)
	}
	return string(ns.UID), nil
}
