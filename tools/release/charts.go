package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"

	"github.com/jobferry/jobferry/tools/release/archive"
	"github.com/jobferry/jobferry/tools/release/checkout"
	"github.com/jobferry/jobferry/tools/release/oci"
	"github.com/jobferry/jobferry/tools/release/statement"
)

// packCharts packs each chart of the repository, with the release's version.
func (r *release) packCharts() error {
	folders, err := os.ReadDir(filepath.Join(r.Root, "charts"))
	if err != nil {
		return err
	}
	for _, folder := range folders {
		packed, metadata, err := r.packChart(filepath.Join(r.Root, "charts", folder.Name()))
		if err != nil {
			return fmt.Errorf("chart %s: %w", folder.Name(), err)
		}
		if err := r.write(metadata.Name+"-"+metadata.Version+".tgz", packed); err != nil {
			return err
		}
	}
	return nil
}

// packChart packs a chart as Helm does, which would write the time into it.
func (r *release) packChart(dir string) ([]byte, *chart.Metadata, error) {
	loaded, err := loader.LoadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	setVersion(loaded.Metadata, r.Version)
	if err := loaded.Validate(); err != nil {
		return nil, nil, err
	}
	metadata, err := yaml.Marshal(loaded.Metadata)
	if err != nil {
		return nil, nil, err
	}
	var files []archive.File
	for _, file := range loaded.Raw {
		data := file.Data
		if file.Name == "Chart.yaml" {
			data = metadata
		}
		files = append(files, archive.File{Name: loaded.Name() + "/" + file.Name, Mode: 0o644, Data: data})
	}
	packed, err := archive.TarGzip(files, r.Time)
	return packed, loaded.Metadata, err
}

// Annotations of a chart that depend on its version:
// https://artifacthub.io/docs/topics/annotations/helm/
const (
	imagesAnnotation     = "artifacthub.io/images"
	prereleaseAnnotation = "artifacthub.io/prerelease"
)

// setVersion gives a chart the version of the release, also where it names its image.
func setVersion(metadata *chart.Metadata, version checkout.Version) {
	if images, has := metadata.Annotations[imagesAnnotation]; has {
		metadata.Annotations[imagesAnnotation] = strings.ReplaceAll(images, ":"+metadata.AppVersion, ":"+string(version))
	}
	if metadata.Annotations == nil {
		metadata.Annotations = map[string]string{}
	}
	metadata.Annotations[prereleaseAnnotation] = strconv.FormatBool(version.Prerelease())
	metadata.Version, metadata.AppVersion = version.Plain(), string(version)
}

// artifactsOf are what a whole release has for registries. Reading them takes a folder.
func artifactsOf(dist, scratch string) ([]oci.Artifact, error) {
	if err := statement.Verify(dist); err != nil {
		return nil, err
	}
	return readArtifacts(dist, scratch)
}

func readArtifacts(dist, scratch string) ([]oci.Artifact, error) {
	images, err := filepath.Glob(filepath.Join(dist, "*"+imageSuffix))
	if err != nil {
		return nil, err
	}
	if len(images) != 1 {
		return nil, fmt.Errorf("%s has %d images instead of one: run make release again", dist, len(images))
	}
	index, tag, err := oci.Load(images[0], scratch)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	artifacts := []oci.Artifact{{Repository: "jobferry", Tag: tag, Content: index}}
	charts, err := filepath.Glob(filepath.Join(dist, "*.tgz"))
	if err != nil {
		return nil, err
	}
	for _, file := range charts {
		packed, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		loaded, err := loader.LoadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		artifact, err := oci.Chart(loaded.Metadata, packed, manifest.Annotations[oci.CreatedAnnotation])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		artifacts = append(artifacts, oci.Artifact{Repository: "charts/" + loaded.Name(), Tag: loaded.Metadata.Version, Content: artifact})
	}
	return artifacts, nil
}
