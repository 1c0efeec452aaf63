{{/* The name of every object. */}}
{{- define "headmark.name" -}}
{{- if contains "headmark" .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-headmark" .Release.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* What finds the pods of a release; it never changes. */}}
{{- define "headmark.selector" -}}
app.kubernetes.io/name: headmark
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "headmark.labels" -}}
{{ include "headmark.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "headmark.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "headmark.secretName" -}}
{{ .Values.secretName | default (include "headmark.name" .) }}
{{- end }}

{{/* The settings of every node, where the values say nothing else. */}}
{{- define "headmark.defaults" -}}
HEADMARK_LISTEN: "0.0.0.0:8080"
# Each names a file of the secret.
DATABASE_URL_FILE: /run/secrets/headmark/database-url
REDIS_URL_FILE: /run/secrets/headmark/redis-url
HEADMARK_SERVICE_KEYS_FILE: /run/secrets/headmark/service-keys
# How long the cluster may take to send requests elsewhere.
HEADMARK_DRAIN_DELAY_MS: "10000"
HEADMARK_LOG_FORMAT: json
{{- end }}

{{/*
Of (dict "defaults" … "values" …): both together, as texts. A value comes before a default, also where it is 0, false or
empty: `merge` and `default` would take the default then. A null is no value.
*/}}
{{- define "headmark.merged" -}}
{{- $settings := deepCopy .defaults }}
{{- range $name, $value := .values }}
{{- if not (kindIs "invalid" $value) }}
{{- $_ := set $settings $name (include "headmark.text" $value) }}
{{- end }}
{{- end }}
{{- toYaml $settings }}
{{- end }}

{{- define "headmark.settings" -}}
{{- include "headmark.merged" (dict "defaults" (include "headmark.defaults" . | fromYaml) "values" .Values.settings) }}
{{- end }}

{{/* The held polls of a pod that the autoscaler aims at: 70 % of what a node may hold. A target of 0 is not allowed. */}}
{{- define "headmark.heldPolls" -}}
{{- $waiting := (include "headmark.settings" . | fromYaml).HEADMARK_WAITING_POLLS | default "5000" }}
{{- .Values.autoscaling.heldPolls | default (div (mul 7 $waiting) 10 | max 1) | int64 }}
{{- end }}

{{/* How long a pod may take to stop: its drain, and 25 s for the last writes and the stores. */}}
{{- define "headmark.graceSeconds" -}}
{{- $settings := include "headmark.settings" . | fromYaml }}
{{- $drain := $settings.HEADMARK_DRAIN_TIMEOUT_MS | default "25000" }}
{{- add 25 (div (add (int64 $settings.HEADMARK_DRAIN_DELAY_MS) (int64 $drain) 999) 1000) }}
{{- end }}

{{/* A value as text. Helm takes numbers for floats, and would write ten million as 1e+07. */}}
{{- define "headmark.text" -}}
{{ if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}{{ else }}{{ . }}{{ end }}
{{- end }}
