// Package external is Kubernetes' own suite for storage that it does not know, and nothing else of its end-to-end tests:
// test/external compiles it and runs it. The drivers come by the flag -storage.testdriver.
package external

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init" // dumps the events of a namespace whose spec has failed
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"  // -allowed-not-ready-nodes, and the checks before each spec
	"k8s.io/kubernetes/test/e2e/framework/testfiles"
	_ "k8s.io/kubernetes/test/e2e/storage/external"
	"k8s.io/kubernetes/test/utils/image"
)

func TestMain(m *testing.M) {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	if framework.TestContext.ListImages { // which its own main does, too
		for _, config := range image.GetImageConfigs() {
			fmt.Println(config.GetE2EImage())
		}
		return
	}
	framework.AfterReadingAllFlags(&framework.TestContext)
	testfiles.AddFileSource(testfiles.RootFileSource{Root: framework.TestContext.RepoRoot}) // where a driver's class is
	os.Exit(m.Run())
}

func TestExternalStorage(t *testing.T) {
	gomega.RegisterFailHandler(framework.Fail)
	suite, reporter := framework.CreateGinkgoConfig()
	ginkgo.RunSpecs(t, "External Storage", suite, reporter)
}
