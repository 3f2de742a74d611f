package main

import (
	"bytes"
	"encoding/json"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// index is the index of an image, in bytes that other tools would write, too. The skopeo of Debian 12
// writes each index anew when it copies one, and the digest stays only if the bytes are equal.
type index struct {
	images

	raw []byte
}

// images has a name of its own since v1.ImageIndex has a method of that name.
type images = v1.ImageIndex

// indexOf writes an index with the fields, and in the order, of the structs of the OCI's
// specification.
func indexOf(all images) (v1.ImageIndex, error) {
	type descriptor struct {
		MediaType types.MediaType `json:"mediaType"`
		Digest    v1.Hash         `json:"digest"`
		Size      int64           `json:"size"`
		Platform  *v1.Platform    `json:"platform"`
	}
	out := struct {
		SchemaVersion int             `json:"schemaVersion"`
		MediaType     types.MediaType `json:"mediaType"`
		Manifests     []descriptor    `json:"manifests"`
	}{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	manifest, err := all.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, m := range manifest.Manifests {
		out.Manifests = append(out.Manifests, descriptor{m.MediaType, m.Digest, m.Size, m.Platform})
	}
	raw, err := json.Marshal(out)
	return index{all, raw}, err
}

func (i index) RawManifest() ([]byte, error) { return i.raw, nil }

func (i index) IndexManifest() (*v1.IndexManifest, error) {
	return v1.ParseIndexManifest(bytes.NewReader(i.raw))
}

func (i index) Digest() (v1.Hash, error) { return partial.Digest(i) }

func (i index) Size() (int64, error) { return partial.Size(i) }
