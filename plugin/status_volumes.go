package plugin

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// volumes lists the storages of classes.
func (a *asked) volumes(cmd *cobra.Command, only []string) ([]audit.Usage, error) {
	auditor, err := a.auditor(cmd)
	if err != nil {
		return nil, err
	}
	auditor.Timeout = run.DefaultTimeout
	return Volumes(cmd.Context(), auditor, only, cmd.ErrOrStderr())
}

// Volumes returns how full the volumes of classes are, without names those of all that can be listed,
// and names on log what was not listed. Jobs list the storages, as for an audit.
func Volumes(ctx context.Context, auditor *run.Auditor, classes []string, log io.Writer) ([]audit.Usage, error) {
	l, err := auditor.Look(ctx, run.Storages{All: len(classes) == 0, Classes: classes})
	if err != nil {
		return nil, err
	}
	for _, err := range slices.Concat(l.Notes, l.Faults) {
		fmt.Fprintln(log, quote.Indent(quote.Line(err.Error()), 4))
	}
	if n := len(l.Faults); n > 0 {
		err = fmt.Errorf("%d storages could not be listed", n)
	}
	return audit.Usages(l.State), err
}

func (p *printer) volumes(out io.Writer, volumes []audit.Usage) {
	rows := &printer{out: out}
	rows.printf("PERSISTENTVOLUME\tCLAIM\tCLASS\tUSED\tSIZE\tSHARE\n")
	for _, v := range volumes {
		claim := "-"
		if v.Claim != "" {
			claim = v.Namespace + "/" + v.Claim
		}
		rows.printf("%s\t%s\t%s\t%s\t%s\t%.0f%%\n", v.PV, claim, v.Class, inMiB(v.Used), resource.NewQuantity(v.Size, resource.BinarySI), 100*v.Share())
	}
	p.err = cmp.Or(p.err, rows.err)
}

// inMiB returns an amount in whole mebibytes, rounded up: a file system counts in blocks.
func inMiB(n int64) string { return fmt.Sprintf("%.0fMi", math.Ceil(float64(n)/(1<<20))) }
