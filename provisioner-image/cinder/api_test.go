package cinder

import "github.com/gophercloud/gophercloud/v2"

// API returns the client of a Cinder, for what only an administrator beside the image asks for.
func (c *Cinder) API() *gophercloud.ServiceClient { return c.api }
