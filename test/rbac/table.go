package rbac

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// String is the table of what each account used.
func (r Result) String() string {
	var out strings.Builder
	columns := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(columns, "account\trole\tpermission\tused\twhy it need not be")
	for _, row := range r.Rows {
		_, _ = fmt.Fprintf(columns, "%s\t%s\t%s\t%d\t%s\n", row.Account, row.Role, row.Permission, row.Used, row.Reason)
	}
	_ = columns.Flush() // a strings.Builder
	return out.String()
}
