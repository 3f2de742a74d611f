//go:build e2e && storms

package e2e

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What users do in a storm. Each goes on until the API server has answered.

// stormClaim is a claim that is kept and used, or that is deleted.
type stormClaim struct {
	name string
	uid  types.UID
	// node of the pod that writes; it is empty for a claim that is deleted.
	node  string
	grows bool
}

func (c *stormClaim) isKept() bool { return c.node != "" }

// otherNode is that of the pod that reads.
func (c *stormClaim) otherNode() string {
	if c.node == "node1" {
		return "node2"
	}
	return "node1"
}

func (s *storm) planClaims() {
	s.w.t.Helper()
	s.w.remove(s.deleteAll)
	for i := range stormClaims {
		c := &stormClaim{name: fmt.Sprintf("kept-%03d", i), node: "node" + nodes[i%len(nodes)], grows: i < stormExpansions}
		s.claims = append(s.claims, c)
		made := s.between(0, stormLasts*2/3)
		acts := []act{{made, "", s.uses(c)}}
		if c.grows {
			acts = append(acts, act{s.between(made, stormLasts), "", s.growsTo(c, "2Gi")})
		}
		s.add(acts...)
	}
	for i := range stormDeletions {
		c := &stormClaim{name: fmt.Sprintf("deleted-%03d", i)}
		s.claims = append(s.claims, c)
		made := s.between(0, stormLasts*5/6)
		s.add(act{made, "", s.makes(c)}, act{s.between(made, stormLasts), "", s.deletes(c)})
	}
}

// insists asks again and again. The answer to a request that was carried out may have been lost.
func insists(ctx context.Context, ask func(context.Context) error) error {
	return pollEvery(ctx, 2*time.Second, toAnswer, ask)
}

func (s *storm) makes(c *stormClaim) func(context.Context) error {
	claims := kube.CoreV1().PersistentVolumeClaims(s.w.ns)
	return func(ctx context.Context) error {
		return insists(ctx, func(ctx context.Context) error {
			made, err := claims.Create(ctx, wanted(cinderClass, c.name), metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				made, err = claims.Get(ctx, c.name, metav1.GetOptions{})
			}
			if err == nil {
				c.uid = made.UID
			}
			return err
		})
	}
}

func (s *storm) deletes(c *stormClaim) func(context.Context) error {
	return func(ctx context.Context) error {
		return insists(ctx, func(ctx context.Context) error {
			return known(kube.CoreV1().PersistentVolumeClaims(s.w.ns).Delete(ctx, c.name, metav1.DeleteOptions{}))
		})
	}
}

// growsTo asks for more as soon as the claim is bound: Kubernetes refuses it before.
func (s *storm) growsTo(c *stormClaim, size string) func(context.Context) error {
	patch := fmt.Sprintf(`{"spec": {"resources": {"requests": {"storage": %q}}}}`, size)
	return func(ctx context.Context) error {
		return insists(ctx, func(ctx context.Context) error {
			_, err := kube.CoreV1().PersistentVolumeClaims(s.w.ns).Patch(ctx, c.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		})
	}
}

// uses makes a claim, and a pod that writes to it, reports that it has, and keeps it mounted.
func (s *storm) uses(c *stormClaim) func(context.Context) error {
	command := fmt.Sprintf("yes %s | head -c %d | dd of=/data/file bs=64k conv=fsync 2>/dev/null; %s; exec sleep 3600", c.name, dataSize, s.reports.by(c, "writer"))
	pod := writable(shell(c.name, c.node, command, wanted(cinderClass, c.name)))
	return func(ctx context.Context) error {
		if err := s.makes(c)(ctx); err != nil {
			return err
		}
		return insists(ctx, func(ctx context.Context) error { return s.startPod(ctx, pod) })
	}
}

// startPod makes a pod unless it exists.
func (s *storm) startPod(ctx context.Context, pod *corev1.Pod) error {
	_, err := kube.CoreV1().Pods(s.w.ns).Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// dataSize is how many bytes a pod writes.
const dataSize = 4 << 20

// dataOf returns the hash of what a pod has written.
func dataOf(c *stormClaim) string {
	text := strings.Repeat(c.name+"\n", dataSize/len(c.name)+1)
	sum := md5.Sum([]byte(text[:dataSize]))
	return hex.EncodeToString(sum[:])
}

// reports are the hashes of what pods have found on their volumes.
type reports struct {
	url  string
	mu   sync.Mutex
	said map[string]string
}

// listen serves reports. A pod that reads does not depend on the API server for that.
func (w *world) listen() *reports {
	w.t.Helper()
	r := &reports{said: map[string]string{}}
	r.url = w.serve(func(_ http.ResponseWriter, request *http.Request) {
		who, what, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/"), "=")
		r.mu.Lock()
		defer r.mu.Unlock()
		r.said[who] = what
	})
	return r
}

// by is the command with which a pod reports what is on the volume of a claim.
func (r *reports) by(c *stormClaim, who string) string {
	return fmt.Sprintf("wget -q -O /dev/null %s/%s/%s=$(md5sum </data/file | cut -c1-32)", r.url, who, c.name)
}

// of returns an error unless the pod has found all data of a claim.
func (r *reports) of(c *stormClaim, who string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if said, want := r.said[who+"/"+c.name], dataOf(c); said != want {
		return fmt.Errorf("its %s has found data with the hash %q, not %q", who, said, want)
	}
	return nil
}
