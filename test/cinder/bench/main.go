package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/noauth"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/transport"
)

func main() {
	count := flag.Int("volumes", 50, "volumes of each round")
	kind := flag.String("type", "lvm", "volume type")
	at := flag.String("at", "1,2,4,8,16", "loops at a time, one round for each number")
	flag.Parse()
	ctx := context.Background()
	api, err := logIn(ctx)
	if err == nil {
		err = rounds(ctx, api, *at, *count, *kind)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// logIn returns a client for the Cinder of the variables of an openrc file.
func logIn(ctx context.Context) (*gophercloud.ServiceClient, error) {
	if endpoint := os.Getenv("OS_CINDER_ENDPOINT"); endpoint != "" {
		return connect(endpoint)
	}
	options, err := openstack.AuthOptionsFromEnv()
	if err != nil {
		return nil, err
	}
	provider, err := openstack.AuthenticatedClient(ctx, options)
	if err != nil {
		return nil, err
	}
	api, err := openstack.NewBlockStorageV3(provider, gophercloud.EndpointOpts{Region: os.Getenv("OS_REGION_NAME")})
	return tuned(api), err
}

// connect returns a client for a Cinder without keystone, by a project that every release accepts
// in the URL.
func connect(endpoint string) (*gophercloud.ServiceClient, error) {
	provider, err := noauth.NewClient(gophercloud.AuthOptions{Username: "admin", TenantName: "00000000000000000000000000000001"})
	if err != nil {
		return nil, err
	}
	api, err := noauth.NewBlockStorageNoAuthV3(provider, noauth.EndpointOpts{CinderEndpoint: endpoint})
	return tuned(api), err
}

// tuned keeps connections as cinder-provisioner does.
func tuned(api *gophercloud.ServiceClient) *gophercloud.ServiceClient {
	if api == nil {
		return nil
	}
	api.HTTPClient = http.Client{Transport: transport.New(nil), Timeout: 2 * time.Minute}
	api.Microversion = microversion
	return api
}

// rounds prints a line for each round: loops at a time, seconds and volumes a second to make them,
// and to delete them.
func rounds(ctx context.Context, api *gophercloud.ServiceClient, at string, count int, kind string) error {
	fmt.Println("loops  made_s  made/s  deleted_s  deleted/s")
	for text := range strings.SplitSeq(at, ",") {
		loops, err := strconv.Atoi(text)
		if err != nil || loops < 1 {
			return fmt.Errorf("-at: %q is no number of loops", text)
		}
		volumes := make([]made, count)
		making, makeErr := timed(loops, count, func(i int) (err error) { volumes[i], err = makeVolume(ctx, api, kind, i); return err })
		deleting, deleteErr := timed(loops, count, func(i int) error { return volumes[i].delete(ctx, api) })
		if makeErr != nil {
			return makeErr
		}
		if deleteErr != nil {
			return deleteErr
		}
		n := float64(count)
		fmt.Printf("%5d  %6.1f  %6.2f  %9.1f  %9.2f\n", loops, making.Seconds(), n/making.Seconds(), deleting.Seconds(), n/deleting.Seconds())
	}
	return nil
}

// timed does something for every number below the count, in so many loops at a time. It returns how
// long that took, and the first error.
func timed(loops, count int, do func(i int) error) (time.Duration, error) {
	next, errs := make(chan int), make(chan error, count)
	var running sync.WaitGroup
	began := time.Now()
	for range loops {
		running.Go(func() {
			for i := range next {
				errs <- do(i)
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	running.Wait()
	took := time.Since(began)
	close(errs)
	for err := range errs {
		if err != nil {
			return took, err
		}
	}
	return took, nil
}
