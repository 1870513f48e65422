package chart_test

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/jobferry/jobferry/e2e/chart/charttest"
	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// The charts, which are also the names of their releases.
const (
	hubChart    = "jobferry"
	workerChart = "jobferry-worker"
	namespace   = charttest.Namespace
)

// policyAPI is what tells a chart that the hub has MutatingAdmissionPolicies.
const policyAPI = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"

func chartDir(name string) string { return checkout.Path("charts", name) }

// template renders a chart as for a hub or worker of the current release.
func template(chart string, args ...string) []string {
	return append([]string{"template", chart, chartDir(chart), "--namespace", namespace,
		"--kube-version", string(binaries.Current) + ".0", "--api-versions", policyAPI}, args...)
}

// render returns a chart's objects.
func render(t *testing.T, chart string, args ...string) objects {
	t.Helper()
	return parse(t, charttest.Helm(t, template(chart, args...)...))
}

// objects are what a chart or a kustomization makes.
type objects []*unstructured.Unstructured

// parse reads YAML documents.
func parse(t *testing.T, manifests string) (all objects) {
	t.Helper()
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(manifests)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
}

// of selects the objects of a kind.
func (o objects) of(kind string) objects {
	return slices.DeleteFunc(slices.Clone(o), func(u *unstructured.Unstructured) bool { return u.GetKind() != kind })
}

// one is the object of a kind and name.
func (o objects) one(t *testing.T, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, object := range o.of(kind) {
		if object.GetName() == name {
			return object
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return nil
}

// as turns an object into its Go type.
func as[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	typed := new(T)
	content, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(content, typed); err != nil {
		t.Fatalf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
	return typed
}
