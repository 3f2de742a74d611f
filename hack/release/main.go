// Command release builds one image of a release: an OCI layout with an index of all platforms, of
// directories of files alone. It needs neither root nor a container engine nor a registry, and the
// same files give the same digest on every machine.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const usage = `usage: release -o DIR -name REGISTRY/NAME -entrypoint FILE [-env NAME=VALUE] [-label NAME=VALUE]... PLATFORM=ROOT...
It writes the image to DIR, an OCI layout, and prints its digest`

func main() {
	digest, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stdout, digest)
}

func run(arguments []string) (v1.Hash, error) {
	one := image{config: v1.Config{User: user, Labels: map[string]string{}}}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprintln(flags.Output(), usage) }
	out := flags.String("o", "", "")
	flags.StringVar(&one.name, "name", "", "")
	flags.Func("entrypoint", "", func(s string) error { one.config.Entrypoint = []string{s}; return nil })
	flags.Func("env", "", func(s string) error { one.config.Env = append(one.config.Env, s); return nil })
	flags.Func("label", "", func(s string) error {
		name, value, ok := strings.Cut(s, "=")
		one.config.Labels[name] = value
		return must(ok, "it must be NAME=VALUE")
	})
	if err := flags.Parse(arguments); err != nil {
		return v1.Hash{}, err
	}
	for _, argument := range flags.Args() {
		r, err := parseRoot(argument)
		if err != nil {
			return v1.Hash{}, err
		}
		one.roots = append(one.roots, r)
	}
	if *out == "" || one.name == "" || len(one.config.Entrypoint) == 0 || len(one.roots) == 0 {
		return v1.Hash{}, errors.New(usage)
	}
	return one.write(*out)
}

// parseRoot reads PLATFORM=ROOT.
func parseRoot(argument string) (root, error) {
	platform, dir, _ := strings.Cut(argument, "=")
	parsed, err := v1.ParsePlatform(platform)
	if err == nil {
		err = must(parsed.OS != "" && parsed.Architecture != "" && dir != "", "it must be OS/ARCHITECTURE=DIRECTORY")
	}
	if err != nil {
		return root{}, fmt.Errorf("%s: %w", argument, err)
	}
	return root{platform: *parsed, dir: dir}, nil
}

func must(holds bool, otherwise string) error {
	if !holds {
		return errors.New(otherwise)
	}
	return nil
}
