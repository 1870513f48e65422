{{- /* The manager's arguments: what the other templates rely on, then what the user chose. */ -}}
{{- define "jobferry.args" -}}
- --namespace={{ .Release.Namespace }}
- --metrics-bind-address=:8080
- --health-probe-bind-address=:8081
{{- if .Values.metrics.secure }}
- --metrics-secure
{{- end }}
{{- if eq (include "jobferry.admissionMode" .) "Webhook" }}
- --admission-webhook
- --admission-webhook-bind-address=:9443
- --admission-webhook-service={{ include "jobferry.fullname" . }}-webhook
{{- if .Values.admission.certSecret }}
- --admission-webhook-cert-dir=/certs/webhook
{{- end }}
{{- end }}
{{- if .Values.subresources.enabled }}
- --subresources-bind-address=:6443
{{- if .Values.subresources.certSecret }}
- --subresources-cert-file=/certs/subresources/tls.crt
- --subresources-key-file=/certs/subresources/tls.key
{{- else }}
- --subresources-service={{ include "jobferry.fullname" . }}-subresources
- --subresources-cert-secret={{ include "jobferry.fullname" . }}-subresources-cert
{{- end }}
{{- end }}
{{- if .Values.pods.enabled }}
- --pods
- --pods-address=$(POD_IP)
- --pods-port={{ int .Values.pods.port }}
{{- if .Values.pods.requestCertificate }}
- --pods-request-certificate
{{- end }}
{{- end }}
{{- if .Values.kueue.enabled }}
- --kueue-namespace={{ .Values.kueue.namespace }}
{{- else }}
- --kueue-disabled
{{- end }}
{{- if .Values.dispatch.allNamespaces }}
- --dispatch-all-namespaces
{{- end }}
{{- if ne .Values.dispatch.defaultPodSecurity "baseline" }}
- --default-pod-security={{ .Values.dispatch.defaultPodSecurity }}
{{- end }}
{{- if ne (join "," .Values.dispatch.groups) "JobSet.jobset.x-k8s.io" }}
- --group-kinds={{ join "," .Values.dispatch.groups }}
{{- end }}
{{- with .Values.dispatch.keepOnHub }}
- --keep-on-hub={{ join "," . }}
{{- end }}
{{- with .Values.carry.serviceAccountAnnotations }}
- --carry-service-account-annotations={{ join "," . }}
{{- end }}
{{- include "jobferry.flags" .Values.config }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "jobferry.ports" -}}
- name: metrics
  containerPort: 8080
- name: health
  containerPort: 8081
{{- if eq (include "jobferry.admissionMode" .) "Webhook" }}
- name: webhook
  containerPort: 9443
{{- end }}
{{- if .Values.subresources.enabled }}
- name: subresources
  containerPort: 6443
{{- end }}
{{- if .Values.pods.enabled }}
- name: pods
  containerPort: {{ int .Values.pods.port }}
{{- end }}
{{- end -}}

{{- /* Certificates that others made, by what they're for: a map from the folder's name to the Secret's. */ -}}
{{- define "jobferry.certSecrets" -}}
{{- if and .Values.subresources.enabled .Values.subresources.certSecret }}
subresources: {{ .Values.subresources.certSecret }}
{{- end }}
{{- if and (eq (include "jobferry.admissionMode" .) "Webhook") .Values.admission.certSecret }}
webhook: {{ .Values.admission.certSecret }}
{{- end }}
{{- end -}}
