package main

import (
	"fmt"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is that of every image: a UID, which the kubelet can compare with runAsNonRoot.
const user = "65532:65532"

// nameOfImage is the annotation by which "ctr images import" names what it imports.
const nameOfImage = "io.containerd.image.name"

// image is what an OCI layout is made of.
type image struct {
	name   string // without tag and digest
	config v1.Config
	roots  []root
}

// root is the file system of one platform.
type root struct {
	platform v1.Platform
	dir      string
}

// write writes the layout of an image for several platforms, and returns the digest by which a
// cluster names it.
func (i image) write(dir string) (v1.Hash, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, r := range i.roots {
		one, err := i.forPlatform(r)
		if err != nil {
			return v1.Hash{}, fmt.Errorf("%s for %s: %w", i.name, r.platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{Platform: &r.platform}})
	}
	all, err := indexOf(index)
	if err != nil {
		return v1.Hash{}, err
	}
	digest, err := all.Digest()
	if err != nil {
		return v1.Hash{}, err
	}
	if err := os.RemoveAll(dir); err != nil {
		return v1.Hash{}, err
	}
	out, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	annotations := map[string]string{nameOfImage: i.name + "@" + digest.String()}
	return digest, out.AppendIndex(all, layout.WithAnnotations(annotations))
}

// forPlatform returns the image of one platform: one layer, and no base image.
func (i image) forPlatform(r root) (v1.Image, error) {
	layer, err := layerOf(r.dir)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	one, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: time.Unix(0, 0).UTC()}}})
	if err != nil {
		return nil, err
	}
	file, err := one.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Variant = r.platform.OS, r.platform.Architecture, r.platform.Variant
	file.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	file.Config = i.config
	return mutate.ConfigFile(one, file)
}
