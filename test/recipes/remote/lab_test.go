package remote

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// serve is the appliance of a box in the lab, at an address: test/cinder/san.sh starts it. The box then has an
// empty thin pool and an empty data set, too.
func serve(world string, arguments []string, _ io.Reader, _, log io.Writer) int {
	const room = 1 << 40
	state(world, "lvm", func(group *lvm) { *group = lvm{Used: "12.34", Volumes: map[string]logicalVolume{}} })
	state(world, "zfs", func(pool *zpool) {
		*pool = zpool{Available: room, ShareNFS: "on", Children: map[string]map[string]string{}}
	})
	server := &http.Server{Addr: arguments[0], Handler: &appliance{room: room, keys: map[string]string{}}, ReadHeaderTimeout: time.Minute}
	fmt.Fprintln(log, server.ListenAndServe())
	return 1
}
