package oci

import (
	"bytes"
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"helm.sh/helm/v3/pkg/chart"
)

// The media types of a chart in a registry: https://helm.sh/docs/topics/registries/
const (
	chartConfig  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartContent types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// CreatedAnnotation is the time of an artifact: for a release, that of its commit.
const CreatedAnnotation = "org.opencontainers.image.created"

// Chart returns a packed chart as the artifact that Helm pulls.
func Chart(metadata *chart.Metadata, packed []byte, created string) (v1.Image, error) {
	config, err := json.Marshal(metadata)
	if err != nil {
		return nil, err
	}
	artifact := chartArtifact{config: config, content: static.NewLayer(packed, chartContent)}
	layer, err := partial.Descriptor(artifact.content)
	if err != nil {
		return nil, err
	}
	digest, size, err := v1.SHA256(bytes.NewReader(config))
	if err != nil {
		return nil, err
	}
	artifact.manifest, err = json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: v1.Descriptor{MediaType: chartConfig, Digest: digest, Size: size},
		Layers: []v1.Descriptor{*layer},
		Annotations: map[string]string{
			"org.opencontainers.image.title":       metadata.Name,
			"org.opencontainers.image.version":     metadata.Version,
			"org.opencontainers.image.description": metadata.Description,
			"org.opencontainers.image.source":      metadata.Home,
			CreatedAnnotation:                      created,
		},
	})
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(&artifact)
}

// chartArtifact is a manifest whose configuration isn't an image's.
type chartArtifact struct {
	config, manifest []byte
	content          v1.Layer
}

func (a *chartArtifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (a *chartArtifact) RawManifest() ([]byte, error)        { return a.manifest, nil }
func (a *chartArtifact) RawConfigFile() ([]byte, error)      { return a.config, nil }

// LayerByDigest is asked for the chart only.
func (a *chartArtifact) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	if own, err := a.content.Digest(); err != nil || own != digest {
		return nil, fmt.Errorf("the chart is %s, not %s: %w", own, digest, err)
	}
	return a.content, nil
}
