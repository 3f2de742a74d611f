package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/plugin/scaffold"
)

func newCommand() *cobra.Command {
	var network, node bool
	cmd := &cobra.Command{
		Use:   "new NAME --network|--node",
		Short: "Write a folder with a provisioner that works, to be changed",
		Long: "new writes the folder NAME: the StorageClass NAME, the ConfigMap with its script and\n" +
			"what it needs in one file, and a README that says what to change in which order. It\n" +
			"needs no cluster, and no image is built.",
		Example: "  kubectl flex new my-filer --network\n  kubectl flex new my-disks --node",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind := scaffold.Network
			if node {
				kind = scaffold.Node
			}
			if err := writeNew(args[0], kind); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: README.md says what to change, and in which order\n", args[0])
			return err
		},
	}
	cmd.Flags().BoolVar(&network, "network", false, "the storage is on the network: pods on any node can use a volume")
	cmd.Flags().BoolVar(&node, "node", false, "the storage is a directory of each node: pods of that node can use a volume")
	cmd.MarkFlagsOneRequired("network", "node")
	cmd.MarkFlagsMutuallyExclusive("network", "node")
	return cmd
}

// writeNew writes the folder of a provisioner into the present one. The name is that of objects, and
// of a label's value, too.
func writeNew(name string, kind scaffold.Kind) error {
	if faults := validation.IsDNS1123Label(name); len(faults) > 0 {
		return fmt.Errorf("the name %s: %s", quote.Name(name), strings.Join(faults, "; "))
	}
	if scaffold.IsShipped(name) {
		return fmt.Errorf("the name %s: is that of a provisioner of this project, whose permissions the new one would have. Remedy: use another name", name)
	}
	files, err := scaffold.Files(name, kind)
	if err != nil {
		return err
	}
	err = os.Mkdir(name, 0o755) //nolint:gosec // for a repository, like the files
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already, and is not changed: use another name", name)
	}
	if err != nil {
		return err
	}
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(name, file), []byte(text), 0o644); err != nil { //nolint:gosec // for a repository
			return err
		}
	}
	return nil
}
