{{- /* How the metrics are scraped. Takes: root, interval. */ -}}
{{- define "jobferry-worker.endpoint" -}}
interval: {{ .interval }}
path: /metrics
{{- if .root.Values.metrics.secure }}
scheme: https
tlsConfig:
  # The controller signs for itself, anew at each start.
  insecureSkipVerify: true
bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token
{{- else }}
scheme: http
{{- end }}
{{- end -}}
