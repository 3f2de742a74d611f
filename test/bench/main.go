package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
	"github.com/flex-provisioner/flex-provisioner/test/bench/process"
	"github.com/flex-provisioner/flex-provisioner/test/bench/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	klog.LogToStderr(true)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	commands := map[string]func(context.Context, []string) error{
		"plan": printPlan, "flags": printFlags, "cell": runCell, "report": printReport,
	}
	if len(args) == 0 || commands[args[0]] == nil {
		return errors.New("usage: bench plan | flags COLUMN | cell … | report …")
	}
	return commands[args[0]](ctx, args[1:])
}

// printPlan prints the cells, one a line: column, row, number of claims, whether a program of
// another project is needed, and the file of its result.
func printPlan(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("plan", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "the cells of a quick run")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, cell := range plan.Cells(*quick) {
		fmt.Println(cell.Column, cell.Row.Name, cell.Claims, cell.Row.IsPeer(), cell.File())
	}
	return nil
}

// printFlags prints the flags of kube-controller-manager, and on another line those of
// kube-scheduler.
func printFlags(_ context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("flags: a column is wanted")
	}
	column := plan.Column(args[0])
	fmt.Println(column.Controllers())
	fmt.Println(column.Scheduler())
	return nil
}

// settings are what a cell is measured with.
type settings struct {
	cell       plan.Cell
	kubeconfig string
	// state is the cluster's directory, which has the process IDs and the audit log. bin has the
	// provisioners.
	state, bin string
	// temp is for what lasts as long as the cell, logs for what the provisioner prints.
	temp, logs string
	// profile keeps CPU profiles of the API server beside the logs.
	profile  bool
	patience time.Duration
}

// start starts a program of a provisioner's. Its log has its name.
func (s settings) start(ctx context.Context, name string, args ...string) (*process.Program, error) {
	log := filepath.Join(s.logs, string(s.cell.Column)+"-"+s.cell.Row.Name+"-"+name+".log")
	return process.Start(ctx, filepath.Join(s.bin, name), log, args...)
}

func runCell(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("cell", flag.ContinueOnError)
	s := settings{}
	column := flags.String("column", string(plan.Raised), "the setting of kube-controller-manager that the cluster has")
	row := flags.String("row", "", "what provisions")
	flags.IntVar(&s.cell.Claims, "claims", 200, "how many claims")
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "of the administrator")
	flags.StringVar(&s.state, "state", "", "the cluster's directory")
	flags.StringVar(&s.bin, "bin", "bin", "where the provisioners are")
	flags.StringVar(&s.logs, "logs", ".", "where the provisioner's output is written to")
	flags.BoolVar(&s.profile, "profile", false, "keep CPU profiles of the API server beside the logs")
	flags.DurationVar(&s.patience, "timeout", 10*time.Minute, "for provisioning, and for deleting")
	out := flags.String("out", "", "the file for the result")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if s.cell.Row, err = plan.RowOf(*row); err != nil {
		return err
	}
	s.cell.Column = plan.Column(*column)
	run := measure
	if s.cell.Column == plan.One {
		run = measureOnes
	}
	if s.temp, err = os.MkdirTemp("", "bench"); err != nil {
		return err
	}
	defer os.RemoveAll(s.temp)
	result, failed := run(ctx, s)
	if failed != nil {
		result.Error = failed.Error()
	}
	return errors.Join(failed, writeJSON(*out, result))
}

func writeJSON(file string, what any) error {
	text, err := json.MarshalIndent(what, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}

// whole is the file of a run.
type whole struct {
	Machine string          `json:"machine"`
	Date    string          `json:"date"`
	Targets []report.Target `json:"targets"`
	Results report.Results  `json:"results"`
}

// printReport reads the results of the cells and prints the tables. It writes bench.json and
// bench.svg beside them.
func printReport(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	dir := flags.String("dir", "", "where the results of the cells are")
	machine := flags.String("machine", "", "what to say of the machine")
	if err := flags.Parse(args); err != nil {
		return err
	}
	results, err := readResults(filepath.Join(*dir, "cells"))
	if err != nil {
		return err
	}
	date := time.Now().UTC().Format(time.RFC3339)
	text := strings.TrimSpace(date+" "+*machine) + "\n\n" + report.Text(results) + report.Summary(results) + "\n"
	fmt.Print(text)
	return errors.Join(
		os.WriteFile(filepath.Join(*dir, "bench.txt"), []byte(text), 0o600),
		os.WriteFile(filepath.Join(*dir, "bench.svg"), []byte(report.SVG(results)), 0o600),
		writeJSON(filepath.Join(*dir, "bench.json"), whole{*machine, date, report.Targets(results), results}),
	)
}

// readResults returns the results in the order of the plan.
func readResults(dir string) (report.Results, error) {
	var out report.Results
	for _, cell := range plan.Cells(false) {
		text, err := os.ReadFile(filepath.Join(dir, cell.File()))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var one report.Result
		if err := json.Unmarshal(text, &one); err != nil {
			return nil, fmt.Errorf("%s: %w", cell.File(), err)
		}
		out = append(out, one)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s holds no results", dir)
	}
	return out.Medians(), nil
}
