package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"
)

func loadChart(t *testing.T, name string) *chart.Chart {
	t.Helper()
	loaded, err := loader.LoadDir(filepath.Join(repository, "charts", name))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// annotation decodes an annotation, which has YAML, without fields that the type lacks.
func annotation(t *testing.T, loaded *chart.Chart, name string, into any) {
	t.Helper()
	text := loaded.Metadata.Annotations["artifacthub.io/"+name]
	if text == "" {
		t.Fatalf("chart %s has no %s", loaded.Name(), name)
	}
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("chart %s: %s: %v", loaded.Name(), name, err)
	}
}

// What Artifact Hub shows of the charts is what they have.
func TestAnnotations(t *testing.T) {
	for _, name := range []string{"jobferry", "jobferry-worker"} {
		loaded := loadChart(t, name)
		var images []struct {
			Name, Image string
			Platforms   []string
		}
		annotation(t, loaded, "images", &images)
		repository := loaded.Values["image"].(map[string]any)["repository"].(string)
		if len(images) != 1 || images[0].Image != repository+":"+loaded.Metadata.AppVersion {
			t.Errorf("chart %s: the images are %v, but the chart runs %s:%s", name, images, repository, loaded.Metadata.AppVersion)
		}
		var built []string
		for _, platform := range platforms {
			if slices.Contains(platform.programs(), inClusters[0]) {
				built = append(built, platform.os+"/"+platform.arch)
			}
		}
		if !slices.Equal(images[0].Platforms, built) {
			t.Errorf("chart %s: the image is for %v, not %v", name, built, images[0].Platforms)
		}
		checkLinks(t, loaded)
		if loaded.Metadata.Annotations["artifacthub.io/license"] != "Apache-2.0" {
			t.Errorf("chart %s has another license", name)
		}
	}
}

// checkLinks checks that links into this repository lead to files that are there.
func checkLinks(t *testing.T, loaded *chart.Chart) {
	t.Helper()
	var links []struct{ Name, URL string }
	annotation(t, loaded, "links", &links)
	for _, link := range links {
		_, path, found := strings.Cut(link.URL, "/main/")
		if _, err := os.Stat(filepath.Join(repository, path)); err != nil || !found || link.Name == "" {
			t.Errorf("chart %s: link %v: %v", loaded.Name(), link, err)
		}
	}
}

func TestAnnotationsOfTheCRD(t *testing.T) {
	loaded := loadChart(t, "jobferry")
	var crds []struct{ Kind, Version, Name, DisplayName, Description string }
	annotation(t, loaded, "crds", &crds)
	var examples []struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             map[string]any
	}
	annotation(t, loaded, "crdsExamples", &examples)
	var names []string
	for _, file := range loaded.Files {
		if !strings.HasPrefix(file.Name, "files/crd/") {
			continue
		}
		var definition struct {
			Metadata struct{ Name string }
			Spec     struct {
				Names    struct{ Kind string }
				Versions []struct{ Name string }
			}
		}
		if err := yaml.Unmarshal(file.Data, &definition); err != nil {
			t.Fatal(err)
		}
		names = append(names, definition.Metadata.Name)
		i := slices.IndexFunc(crds, func(crd struct{ Kind, Version, Name, DisplayName, Description string }) bool {
			return crd.Name == definition.Metadata.Name
		})
		if i < 0 || crds[i].Kind != definition.Spec.Names.Kind || crds[i].Version != definition.Spec.Versions[0].Name {
			t.Errorf("the annotation doesn't have %+v", definition)
		}
	}
	if len(names) == 0 || len(crds) != len(names) || len(examples) != len(names) {
		t.Errorf("the chart has the CRDs %v, the annotations %v and %v", names, crds, examples)
	}
}
