package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	accounts "github.com/jobferry/jobferry/pkg/manager/usage"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
	"github.com/jobferry/jobferry/pkg/util/text"
)

const (
	// maxAnswer bounds what is read of an answer of Prometheus.
	maxAnswer = 16 << 20
	// queryTimeout is how long Prometheus may take.
	queryTimeout = time.Minute
)

// fromPrometheus reads by how much the metrics of usage have increased.
func fromPrometheus(ctx context.Context, address, namespace, worker string, since time.Duration) ([]show.NamespaceUsage, error) {
	all := usageSums{}
	for _, metric := range []struct {
		name string
		add  func(*accounts.Usage, float64)
	}{
		{"jobferry_usage_resource_seconds_total", func(u *accounts.Usage, v float64) { u.Total = v }},
		{"jobferry_usage_repeated_resource_seconds_total", func(u *accounts.Usage, v float64) { u.Repeated = v }},
		{"jobferry_usage_unknown_resource_seconds_total", func(u *accounts.Usage, v float64) { u.Unknown = v }},
	} {
		series, err := query(ctx, address, increase(metric.name, namespace, worker, since))
		if err != nil {
			return nil, err
		}
		for _, s := range series {
			value, err := s.value()
			if err != nil {
				return nil, err
			}
			metric.add(all.of(s.Metric["namespace"], s.Metric["worker"], corev1.ResourceName(s.Metric["resource"])), value)
		}
	}
	return all.sorted(), nil
}

// increase is the query of a metric's increase, by its labels.
func increase(metric, namespace, worker string, since time.Duration) string {
	of := ""
	if namespace != "" {
		of += "namespace=" + strconv.Quote(namespace) + ","
	}
	if worker != "" {
		of += "worker=" + strconv.Quote(worker)
	}
	return fmt.Sprintf("sum by (namespace, worker, resource) (increase(%s{%s}[%ds])) > 0", metric, of, int64(since.Seconds()))
}

// series is one of a vector that Prometheus answers.
type series struct {
	Metric map[string]string `json:"metric"`
	Value  []any             `json:"value"`
}

func (s *series) value() (float64, error) {
	if len(s.Value) == 2 {
		if text, is := s.Value[1].(string); is {
			return strconv.ParseFloat(text, 64)
		}
	}
	return 0, fmt.Errorf("an answer of Prometheus has a value that isn't a number: %s", text.Clean(fmt.Sprint(s.Value), text.MaxMessage))
}

func query(ctx context.Context, address, promQL string) ([]series, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return nil, access.Advise(fmt.Errorf("--prometheus: %q isn't a URL", address), "such as http://localhost:9090")
	}
	at = at.JoinPath("api", "v1", "query")
	at.RawQuery = url.Values{"query": {promQL}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was read
	var answer struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   struct {
			Result []series `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("the Prometheus at %s answers %s, and the answer can't be read: %w", at.Host, response.Status, err)
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("the Prometheus at %s answers %s: %s", at.Host, response.Status, text.Clean(answer.Error, text.MaxMessage))
	}
	return answer.Data.Result, nil
}
