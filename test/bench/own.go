package main

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
	"github.com/flex-provisioner/flex-provisioner/test/bench/report"
)

// listen is where the dispatcher that the benchmark starts serves its metrics.
const listen = "127.0.0.1:18080"

// ownShares returns what our dispatcher's own share of the runs was. Of the replicas of a deployed one, those that do not lead have no share.
func ownShares(ctx context.Context, s settings, c *cluster) ([]report.Share, error) {
	if s.cell.Row.Kind != plan.Ours {
		return nil, nil
	}
	addresses := []string{listen}
	if s.cell.Column == plan.One {
		addresses = nil
		pods, err := c.client.CoreV1().Pods(systemNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for _, pod := range pods.Items {
			addresses = append(addresses, pod.Status.PodIP+":8080")
		}
	}
	var out []report.Share
	for _, address := range addresses {
		shares, err := sharesAt(ctx, "http://"+address+"/metrics")
		if err != nil {
			return nil, err
		}
		out = append(out, shares...)
	}
	return out, nil
}

func sharesAt(ctx context.Context, url string) ([]report.Share, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() // only read
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", url, answer.Status)
	}
	return report.ReadShares(answer.Body)
}
