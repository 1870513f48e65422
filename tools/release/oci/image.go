package oci

import (
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/jobferry/jobferry/tools/release/archive"
)

// What the image's containers start as. The Dockerfile makes the same image: a test compares them.
const (
	user       = "65532:65532"
	entrypoint = "/jobferry-manager"
)

// Image is Jobferry's image, for several architectures.
type Image struct {
	Created time.Time
	// Labels are those of the image, and annotations of its index.
	Labels map[string]string
	// Programs are the files in the image's root, by architecture.
	Programs map[string][]archive.File
}

// Index returns the image of each architecture, and the index of them.
func (i Image) Index() (v1.ImageIndex, error) {
	certificates, err := layer([]archive.File{{Name: rootsFile, Mode: 0o644, Data: roots()}}, i.Created)
	if err != nil {
		return nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range slices.Sorted(maps.Keys(i.Programs)) {
		programs, err := layer(i.Programs[architecture], i.Created)
		if err != nil {
			return nil, err
		}
		image, err := i.image(architecture, certificates, programs)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	return mutate.Annotations(index, i.Labels).(v1.ImageIndex), nil
}

func (i Image) image(architecture string, layers ...v1.Layer) (v1.Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	var added []mutate.Addendum
	for _, layer := range layers {
		added = append(added, mutate.Addendum{
			Layer: layer, MediaType: types.OCILayer,
			History: v1.History{Created: v1.Time{Time: i.Created}, CreatedBy: "make release"},
		})
	}
	image, err := mutate.Append(base, added...)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", architecture, v1.Time{Time: i.Created}
	config.Config = v1.Config{
		User: user, Entrypoint: []string{entrypoint}, WorkingDir: "/", Labels: i.Labels,
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	}
	return mutate.ConfigFile(image, config)
}

func layer(files []archive.File, modified time.Time) (v1.Layer, error) {
	var content bytes.Buffer
	if err := archive.Tar(&content, files, modified); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
}
