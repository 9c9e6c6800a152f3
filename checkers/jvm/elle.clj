; Columns in, anomalies out: Elle's checkers for transactions over lists and registers.

; Elle asks for unilog, to print its log, and its artifact does not name it: nobody needs that log here.
(when-not (find-ns 'unilog.config)
  (create-ns 'unilog.config)
  (intern 'unilog.config 'start-logging! (fn [& _]))
  (dosync (commute @#'clojure.core/*loaded-libs* conj 'unilog.config)))

(ns wrackline.elle
  (:require [elle.list-append :as list-append]
            [elle.rw-register :as rw-register]
            [jepsen.history :as h]))

(defn micro-op
  [^longs kinds ^longs keys ^longs a ^longs b ^longs flat nothing seen? i]
  (let [k (aget keys (int i)), x (aget a (int i))]
    (case (int (aget kinds (int i)))
      0 [:append k x]
      1 [:w k x]
      2 [:r k (when (and seen? (not= x nothing)) x)]
      3 [:r k (when (and seen? (not= x nothing))
                (mapv #(aget flat (int %)) (range x (aget b (int i)))))])))

(defn history
  "`order`: rows in the order of events, a completion as -1 - row; transaction `row` has the micro-operations
  [starts row, starts row + 1), `outcome` 0 ok, 1 fail, 2 unknown."
  [^longs order ^longs process ^longs outcome ^longs starts kinds keys a b flat nothing]
  (h/history
    (mapv (fn [index at]
            (let [row (int (if (neg? at) (- -1 at) at))
                  done? (neg? at)
                  type (if done? (nth [:ok :fail :info] (aget outcome row)) :invoke)]
              {:index index
               :time index
               :process (aget process row)
               :type type
               :f :txn
               :value (mapv #(micro-op kinds keys a b flat nothing (= type :ok) %)
                            (range (aget starts row) (aget starts (inc row))))}))
          (range)
          order)
    {:dense-indices? true}))

(defn operation?
  "A sorted map of numbers (what was seen twice, and how often) cannot be asked for a keyword."
  [value]
  (and (map? value) (not (sorted? value)) (:process value) (:index value)))

(defn operations
  "Indexes of the events that a case names, at most 16."
  [case]
  (->> (tree-seq coll? seq case)
       (filter operation?)
       (map :index)
       distinct
       (take 16)
       vec))

(defn told [value]
  (binding [*print-length* 12 *print-level* 8]
    (let [text (pr-str value)]
      (subs text 0 (min 600 (count text))))))

(defn plain
  "A case as plain data, an operation as {:operation index}."
  [value]
  (cond (operation? value)   {:operation (:index value)}
        (map? value)         (into {} (map (fn [[k v]] [(plain k) (plain v)])) (take 16 value))
        (coll? value)        (mapv plain (take 32 value))
        (keyword? value)     (name value)
        (or (nil? value) (number? value) (string? value) (boolean? value)) value
        :else                (str value)))

(defn facts
  "What proves an anomaly that is no cycle, as EDN; nothing where that is long."
  [case]
  (let [text (if (and (map? case) (not (:steps case))) (pr-str (plain case)) "{}")]
    (if (< (count text) 4000) text "{}")))

(defn number
  "A key or a value as a long; `nothing` for nil, and for Elle's own word for the state before the first write."
  [value nothing]
  (if (integer? value) (long value) nothing))

(defn edge
  "[kind key value value' process], why one transaction of a cycle comes before the next."
  [step nothing]
  [(name (:type step))
   (number (:key step) nothing) (number (:value step) nothing) (number (:value' step) nothing)
   (number (:process step) nothing)])

(defn cycle-of
  "[[indexes of completions] [edges]], the last edge leads back to the first transaction; empty for what is no cycle."
  [case nothing]
  (if (and (:steps case) (:cycle case))
    [(mapv :index (butlast (:cycle case))) (mapv #(edge % nothing) (:steps case))]
    [[] []]))

(defn check
  "[valid? [[type count [[indexes text cycle facts] ...]] ...] [refuted models]]: 1 valid, 0 not, -1 unknown.
  `assumed`: what may be assumed of each register, as rw-register names it."
  [model consistency assumed timeout-ms & columns]
  (let [options (into {:consistency-models [(keyword consistency)] :cycle-search-timeout timeout-ms}
                      (map (fn [one] [(keyword one) true]))
                      assumed)
        nothing (last columns)
        ; Elle's tasks would build an index of operations when they need it, from inside each other, and wait
        ; for ever where there are few processors (elle's issue 32).
        events (h/ensure-pair-index (apply history columns))
        result (case model
                 "list-append" (list-append/check options events)
                 "rw-register" (rw-register/check options events))
        anomalies (for [[type cases] (:anomalies result)]
                    (let [cases (if (sequential? cases) cases [cases])]
                      [(name type) (count cases)
                       (mapv (fn [one]
                               [(operations one) (told (or (:steps one) one)) (cycle-of one nothing) (facts one)])
                             (take 3 cases))]))]
    [(case (:valid? result) true 1 false 0 -1)
     (vec anomalies)
     (mapv name (:not result))]))
