package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/mapper"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Result is how a run ended: the exit code, the termination message, and what is printed to
// standard output.
type Result struct {
	Code    int
	Message string
	Output  string
}

// Judge returns how a run ended. The first line of the message is for the claim's user: the cause
// and the remedy, in one sentence. The second line is for the administrator.
func Judge(task input.Task, done Report, err error) Result {
	if err == nil {
		return Result{Code: contract.ExitDone, Message: done.Message, Output: done.Output}
	}
	return Result{
		Code: exitCode(err),
		Message: contract.ClaimPrefix + oneLine(sentence(task, err), contract.MaxMessage/4) + "\n" +
			oneLine(err.Error()+remedy(task, err), contract.MaxMessage/2) + "\n",
	}
}

// remedy returns what an administrator can do about a volume that says nothing of a claim, or
// nothing. What has made such a volume, only a person knows.
func remedy(task input.Task, err error) string {
	unmarked, ok := errors.AsType[*volume.UnmarkedError](err)
	if !ok {
		return ""
	}
	return fmt.Sprintf(". Remedy: if the volume belongs to this claim, say so: openstack volume set --property %s=%s %s. If not, set the reclaim policy of the PersistentVolume %s to Retain,"+
		" and delete the PersistentVolume after its claim; the volume is kept", volume.KeyUID, unmarked.UID, unmarked.ID, task.Request.PVName)
}

// oneLine returns the text as one line of at most limit bytes, without control characters: a
// storage's error message may be in it, and kubectl prints it.
func oneLine(text string, limit int) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(text, "?"))
	return contract.Shorten(strings.Join(strings.Fields(printable), " "), limit)
}

// sentence explains the error to a user who knows the claim and its class, and nothing of Cinder.
func sentence(task input.Task, err error) string {
	if errors.Is(err, context.Canceled) {
		return "the run was stopped before it had finished; it is tried again"
	}
	if f, ok := errors.AsType[*input.Error](err); ok {
		return faultSentence(task, f)
	}
	if u, ok := errors.AsType[*mapper.UnsupportedError](err); ok {
		return u.Reason
	}
	if e, ok := errors.AsType[*volume.Error](err); ok {
		return storageSentence(task, e)
	}
	if isRefusedByKubernetes(err) {
		return "Kubernetes refused an object of the provisioner; an administrator finds the reason in the Job's event"
	}
	return "the provisioner failed; it is tried again, and an administrator finds the reason in the Job's event"
}

// faultSentence shows the text of a fault only if the user can correct it. Other faults are about
// the config and its credentials.
func faultSentence(task input.Task, f *input.Error) string {
	if f.Code == contract.ExitBadRequest {
		return f.Error()
	}
	return fmt.Sprintf("storage class %q is not set up correctly; an administrator finds the reason in the"+
		" Job's event, and must correct the config", task.Request.Class)
}

func storageSentence(task input.Task, e *volume.Error) string {
	said := e.Said
	if said == "" {
		said = "the server does not answer"
	}
	if e.RequestID != "" {
		said += " (request " + e.RequestID + ")"
	}
	what := fmt.Sprintf("storage class %q%s: Cinder could not %s: ", task.Request.Class, typeOf(task), e.Doing)
	switch e.Kind {
	case volume.Denied:
		return what + said + "; an administrator must correct the login"
	case volume.Full:
		return what + said + "; request less, delete volumes, or ask an administrator for more capacity or quota"
	case volume.Misconfigured:
		return what + said + "; an administrator must correct the class or its config"
	case volume.Unsuitable:
		return what + said
	case volume.Unavailable, volume.Busy, volume.Gone:
		return what + said + "; it is tried again"
	default:
		return what + said + "; it is tried again"
	}
}

func typeOf(task input.Task) string {
	if task.Volume.Type == "" {
		return ""
	}
	return fmt.Sprintf(" with volume type %q", task.Volume.Type)
}
