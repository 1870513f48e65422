package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
)

// enoughSeeds have all label values on both sides: which outcome is rare is a matter of chance.
const enoughSeeds = 200

// ownMetrics are those that one side alone has, and why.
var ownMetrics = map[string]string{
	"job_controller_stale_sync_skips_total": "the embedded one corrects a late cache by its own writes: it skips no sync",
	"job_controller_cache_behind_seconds":   "the built-in doesn't wait for a cache that is as new as its predecessor's writes",
}

// maxMetricsLag is by how much the metrics of a Job controller may be behind the statuses that it
// writes: it counts an end after it's written.
const maxMetricsLag = 30 * time.Second

// awaitMetrics is compareMetrics as soon as both sides agree, or when they had the time to.
func awaitMetrics(ctx context.Context, builtIn, embedded *side, values bool) (compared int, err error) {
	// What differs says more than that the time is up.
	_ = wait.PollUntilContextTimeout(ctx, time.Second, maxMetricsLag, true, func(ctx context.Context) (bool, error) {
		compared, err = compareMetrics(ctx, builtIn, embedded, values)
		return err == nil, nil
	})
	return compared, err
}

// compareMetrics compares the metrics of the Job and the TTL controller, and returns how many both
// have: names, types, labels and buckets; with their values, the labels of what succeeded. How many
// syncs fail, say by a conflict, differs.
func compareMetrics(ctx context.Context, builtIn, embedded *side, values bool) (int, error) {
	var lines [2]sets.Set[string]
	for i, s := range []*side{builtIn, embedded} {
		families, err := scrape(ctx, s.metricsURL)
		if err != nil {
			return 0, fmt.Errorf("metrics of the %s Job controller: %w", s.name, err)
		}
		lines[i] = describeMetrics(families, values)
	}
	onlyA, onlyB := lines[0].Difference(lines[1]), lines[1].Difference(lines[0])
	if onlyA.Len()+onlyB.Len() > 0 {
		return 0, fmt.Errorf("metrics of the built-in alone:\n%s\nof the embedded alone:\n%s",
			strings.Join(sets.List(onlyA), "\n"), strings.Join(sets.List(onlyB), "\n"))
	}
	if lines[0].Len() == 0 {
		return 0, errors.New("neither side has metrics")
	}
	return lines[0].Len(), nil
}

// describeMetrics has a line for each metric.
func describeMetrics(families map[string]*dto.MetricFamily, values bool) sets.Set[string] {
	lines := sets.New[string]()
	for name, f := range families {
		compared := strings.HasPrefix(name, "job_controller_") || strings.HasPrefix(name, "ttl_after_finished_controller_")
		if !compared || ownMetrics[name] != "" {
			continue
		}
		for _, m := range f.GetMetric() {
			lines.Insert(fmt.Sprintf("%s %s %v", name, f.GetType(), describeMetric(m, false)))
			if values && !failed(m) {
				lines.Insert(fmt.Sprintf("%s %v", name, describeMetric(m, true)))
			}
		}
	}
	return lines
}

// describeMetric are the labels, by name, and the buckets.
func describeMetric(m *dto.Metric, values bool) []string {
	var out []string
	for _, label := range m.GetLabel() {
		if values {
			out = append(out, label.GetName()+"="+label.GetValue())
		} else {
			out = append(out, label.GetName())
		}
	}
	slices.Sort(out)
	for _, b := range m.GetHistogram().GetBucket() {
		out = append(out, fmt.Sprint(b.GetUpperBound()))
	}
	return out
}

// failed reports whether the metric is about requests or syncs that failed.
func failed(m *dto.Metric) bool {
	return slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool {
		return l.GetName() == "result" && l.GetValue() == "error" || l.GetName() == "status" && l.GetValue() == "failed"
	})
}

func scrape(ctx context.Context, url string) (map[string]*dto.MetricFamily, error) {
	// kube-controller-manager makes its certificate itself, on loopback.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // on loopback
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	return parseMetrics(response.Body)
}

func parseMetrics(text io.Reader) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(text)
}
