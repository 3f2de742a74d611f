//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// audited is a request in the audit log of the lab's API server.
type audited struct {
	Verb   string `json:"verb"`
	Agent  string `json:"userAgent"`
	Object struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	User struct {
		Name string `json:"username"`
	} `json:"user"`
	Answer struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	At          time.Time         `json:"requestReceivedTimestamp"`
	Annotations map[string]string `json:"annotations"`
}

// resource is what a request was about: "pods", "pods/log".
func (a audited) resource() string {
	if a.Object.Subresource == "" {
		return a.Object.Resource
	}
	return a.Object.Resource + "/" + a.Object.Subresource
}

// requestKind is what requests are counted by.
type requestKind struct {
	user, verb, resource string
	code                 int
}

// countRequests counts a user's requests that the API server received from one time on and before
// another.
func countRequests(user string, from, to time.Time) (map[requestKind]int, error) {
	requests, err := requestsOf(user, from, to)
	count := map[requestKind]int{}
	for _, r := range requests {
		count[requestKind{r.User.Name, r.Verb, r.resource(), r.Answer.Code}]++
	}
	return count, err
}

// requestsOf returns a user's requests, those of all files of the log that were written since the
// first time.
func requestsOf(user string, from, to time.Time) ([]audited, error) {
	all, err := auditedWith(fmt.Sprintf(`"username":%q`, user), from, to)
	return slices.DeleteFunc(all, func(r audited) bool { return r.User.Name != user }), err
}

// auditedWith returns the requests whose line in the log contains a text. The log is read again if
// it was rotated meanwhile.
func auditedWith(text string, from, to time.Time) ([]audited, error) {
	for {
		files, err := auditLogs(from)
		if err != nil {
			return nil, err
		}
		var out []audited
		for _, file := range files {
			err = errors.Join(err, readAudit(file, []byte(text), func(r audited) {
				if !r.At.Before(from) && r.At.Before(to) {
					out = append(out, r)
				}
			}))
		}
		now, listed := auditLogs(from)
		if slices.Equal(files, now) {
			return out, errors.Join(err, listed)
		}
	}
}

// auditLogs returns the files of the log that were written since a time.
func auditLogs(from time.Time) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(labState(), "kube", "audit", "audit*.log"))
	if err == nil && len(files) == 0 {
		err = errors.New("the API server writes no audit log")
	}
	return slices.DeleteFunc(files, func(file string) bool {
		info, err := os.Stat(file)
		return err == nil && info.ModTime().Before(from)
	}), err
}

// readAudit yields the requests of one file whose line contains a text. Its last line may be half
// written.
func readAudit(file string, text []byte, yield func(audited)) error {
	log, err := os.Open(file)
	if err != nil {
		return err
	}
	defer log.Close()
	for lines := bufio.NewReaderSize(log, 1<<20); ; {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case !bytes.Contains(line, text):
			continue
		}
		var r audited
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		yield(r)
	}
}

// requests reports an error unless the audit log has exactly so many requests of a user since a
// time.
func (w *world) requests(user string, from time.Time, want int) func(context.Context) error {
	return func(context.Context) error {
		found, err := requestsOf(user, from, time.Now())
		if err == nil && len(found) != want {
			err = fmt.Errorf("it has %d", len(found))
		}
		return err
	}
}

// serviceAccount is the user name of a ServiceAccount.
func serviceAccount(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// What is counted below is found in the audit log: each request of a user once, with its answer,
// and none from before.
func TestAuditLogHasEachRequestOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "audit")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}
	_, err := kube.CoreV1().ServiceAccounts(w.ns).Create(w.ctx(), account, metav1.CreateOptions{})
	w.must(err, "create the ServiceAccount")
	config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfigOf("reader"))
	w.must(err, "read its kubeconfig")
	reader, err := kubernetes.NewForConfig(config)
	w.must(err, "make its client")
	ask := func() { _, _ = reader.CoreV1().ConfigMaps(w.ns).Get(w.ctx(), "none", metav1.GetOptions{}) } // it may not
	ask()
	from := time.Now()
	for range 3 {
		ask()
	}
	user := serviceAccount(w.ns, "reader")
	w.eventually(10*time.Second, "the audit log to have three requests", w.requests(user, from, 3))
	w.always(2*time.Second, "the audit log may have no more", w.requests(user, from, 3))
	count, err := countRequests(user, from, time.Now())
	w.must(err, "read the audit log")
	equal(t, "requests by user, verb, resource and answer", fmt.Sprint(count), fmt.Sprintf("map[{%s get configmaps 403}:3]", user))
}
