//go:build e2e

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/test/rbac"
)

// Marks in the audit log, as names of objects that do not exist: a log without the first has lost
// what was before it.
const auditBegins, auditEnds = "e2e-audit-begins", "e2e-audit-ends"

func markAudit(ctx context.Context, mark string) error {
	_, err := kube.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, mark, metav1.GetOptions{})
	if known(err) != nil {
		return fmt.Errorf("mark the audit log: %w", err)
	}
	return nil
}

// isMarked reports an error unless the audit log has a mark that was set since a time.
func isMarked(mark string, from time.Time) error {
	found, err := auditedWith(mark, from, time.Now())
	if err == nil && !slices.ContainsFunc(found, func(r audited) bool { return r.Object.Name == mark }) {
		err = errors.New("the audit log lacks the mark " + mark + ": did it begin later, or was it rotated away?")
	}
	return err
}

// isWhole reports whether every test was to run. A part of them does not need every permission.
func isWhole() bool {
	run, skip := flag.Lookup("test.run").Value.String(), flag.Lookup("test.skip").Value.String()
	return (run == "" || run == ".") && skip == ""
}

// permissionsFit compares the shipped roles with what the shipped accounts, and their stand-ins,
// have asked of the API server since a time. It prints what each used.
func permissionsFit(ctx context.Context, from time.Time, whole bool) error {
	shipped, err := rbac.Load("../..")
	if err != nil {
		return err
	}
	if err := markAudit(ctx, auditEnds); err != nil {
		return err
	}
	if err := poll(ctx, 20*time.Second, func(context.Context) error { return isMarked(auditEnds, from) }); err != nil {
		return err
	}
	if err := isMarked(auditBegins, from); err != nil {
		return err
	}
	asked, err := auditedWith(`"username":"system:serviceaccount:`, from, time.Now())
	if err != nil {
		return err
	}
	result := rbac.Compare(shipped.Grants(), permissionRequests(shipped, asked))
	fmt.Printf("permissions of the shipped accounts, by %d requests of ServiceAccounts in the audit log (%s):\n%s", len(asked), auditSize(from), result)
	fmt.Print(refusedOtherwise(asked))
	return judged(shipped, result, whole)
}

// judged turns the result into an error. What a part of the tests has not used may be used by
// others.
func judged(shipped rbac.Manifests, result rbac.Result, whole bool) error {
	var errs []error
	for _, fault := range shipped.Faults() {
		errs = append(errs, errors.New("the shipped roles: "+fault))
	}
	for _, missing := range result.Missing {
		errs = append(errs, errors.New("permission missing: "+missing))
	}
	switch {
	case whole:
		for _, unused := range result.Unused {
			errs = append(errs, errors.New("permission unused: "+unused+": remove it from the role, or give the reason in test/rbac/exceptions.go"))
		}
	case len(result.Unused) > 0:
		fmt.Printf("%d permissions were not used, which is no failure: not every test ran, or one failed\n", len(result.Unused))
	}
	return errors.Join(errs...)
}

// auditSize is how much of the audit log there is.
func auditSize(from time.Time) string {
	files, _ := auditLogs(from) // it was read a moment ago
	var bytes int64
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			bytes += info.Size()
		}
	}
	return fmt.Sprintf("%d MB in %d files", bytes>>20, len(files))
}

// beginnings are times in which the API server had just been started again. It does not know the
// roles then, and refuses what they allow.
var beginnings []period

type period struct{ from, to time.Time }

// poorer has the accounts whose role a test has taken away.
var poorer sync.Map

// permissionRequests are the requests of ServiceAccounts as permissions know them.
func permissionRequests(shipped rbac.Manifests, asked []audited) []rbac.Request {
	var out []rbac.Request
	for _, a := range asked {
		if a.isForbidden() && slices.ContainsFunc(beginnings, func(p period) bool { return a.At.After(p.from) && a.At.Before(p.to) }) {
			continue
		}
		if _, was := poorer.Load(a.User.Name); was && a.isForbidden() {
			continue
		}
		r, ok := shipped.RequestOf(a.User.Name, rbac.Request{
			Verb:      a.Verb,
			Resource:  rbac.ResourceName(a.Object.Group, a.Object.Resource, a.Object.Subresource),
			Namespace: a.Object.Namespace, Name: a.Object.Name,
			Refused: a.isForbidden(), AllowedBy: a.Annotations["authorization.k8s.io/reason"],
		})
		if ok {
			out = append(out, r)
		}
	}
	return out
}

// isForbidden reports whether the authorizer refused the request. Admission, as of a quota, refuses
// with the same code what is allowed.
func (a audited) isForbidden() bool {
	return a.Annotations["authorization.k8s.io/decision"] == "forbid"
}

// refusedOtherwise says which answers 403 the authorizer did not give: a namespace that is being
// deleted, a quota.
func refusedOtherwise(asked []audited) string {
	count := map[string]int{}
	for _, a := range asked {
		_, account, ours := strings.Cut(a.User.Name, ":flex-") // in the namespaces of this project, or the dispatcher of a test
		if ours && a.Answer.Code == http.StatusForbidden && !a.isForbidden() {
			count["flex-"+account+" "+a.Verb+" "+a.resource()]++
		}
	}
	if len(count) == 0 {
		return ""
	}
	return fmt.Sprintf("allowed by roles, and refused by admission: %v\n", count)
}
